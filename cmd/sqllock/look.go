package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
)

// lockCommands returns the commands that show the locks of others, and take them away.
func lockCommands(c *console) []*cobra.Command {
	return []*cobra.Command{lsCommand(c), showCommand(c), watchCommand(c), releaseCommand(c), purgeCommand(c)}
}

// look is the common part of ls, show and watch, which read the holders of both kinds of lock.
type look struct {
	*console
	place
	kind string
	json bool
}

func (l *look) addFlags(cmd *cobra.Command) {
	l.place.addFlags(cmd)
	l.kind = kindAll
	addChoice(cmd, &l.kind, "kind", "`kind` of lock: lease, session or all", kindLease, kindSession, kindAll)
	cmd.Flags().BoolVar(&l.json, "json", false, "print a JSON array")
}

// read opens a reader, reads once and closes it. With --kind all one kind may fail; read reports that on stderr.
func (l *look) read(cmd *cobra.Command, from sources) (reading, error) {
	r, err := l.open(cmd, from)
	if err != nil {
		return reading{}, err
	}
	defer r.close()
	seen, err := r.read(cmd.Context())
	for _, missing := range seen.missing {
		l.note(missing)
	}
	return seen, err
}

// search is the common part of ls and watch, which accept a PREFIX of names.
type search struct {
	look
	prefix string
}

func (s *search) addFlags(cmd *cobra.Command) {
	s.look.addFlags(cmd)
	cmd.ValidArgsFunction = s.completeName(s.console, cobra.ShellCompDirectiveNoFileComp)
}

func (s *search) parse(args []string, usage string) error {
	if len(args) > 1 {
		return errors.New(usage)
	}
	if len(args) == 1 {
		s.prefix = args[0]
	}
	return s.checkTables(s.kind)
}

func (s *search) listSessions(ctx context.Context, db *database, locker sessionLocker) ([]entry, error) {
	all, err := locker.holders(ctx)
	if err != nil {
		return nil, err
	}
	if err := db.tellNames(ctx, all); err != nil {
		return nil, err
	}
	return named(ctx, db, sessionEntries(all), s.prefix)
}
