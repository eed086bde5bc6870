// Package locks has the commands about the locks of others: ls, show and watch show them, release takes one from its
// holder, and purge deletes expired leases.
package locks

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/console"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/database"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/flags"
)

// Commands returns the commands that show the locks of others, and take them away.
func Commands(c *console.Console) []*cobra.Command {
	return []*cobra.Command{lsCommand(c), showCommand(c), watchCommand(c), releaseCommand(c), purgeCommand(c)}
}

// look is the common part of ls, show and watch, which read the holders of both kinds of lock.
type look struct {
	*console.Console
	database.Flags
	kind string
	json bool
}

// AddFlags adds the flags that all of them have to a command.
func (l *look) AddFlags(cmd *cobra.Command) {
	l.Flags.AddFlags(cmd)
	l.kind = database.KindAll
	flags.AddChoice(cmd, &l.kind, "kind", "`kind` of lock: lease, session or all", database.KindLease, database.KindSession, database.KindAll)
	flags.AddJSON(cmd, &l.json)
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
		l.Note(missing)
	}
	return seen, err
}

// search is the common part of ls and watch, which accept a PREFIX of names.
type search struct {
	look
	prefix string
}

// AddFlags adds the flags of look, and completes PREFIX.
func (s *search) AddFlags(cmd *cobra.Command) {
	s.look.AddFlags(cmd)
	cmd.ValidArgsFunction = s.CompleteName(s.Console, cobra.ShellCompDirectiveNoFileComp)
}

func (s *search) parse(args []string, usage string) error {
	if len(args) > 1 {
		return errors.New(usage)
	}
	if len(args) == 1 {
		s.prefix = args[0]
	}
	return s.CheckTables(s.kind)
}

func (s *search) listSessions(ctx context.Context, db *database.Database, locker database.SessionLocker) ([]entry, error) {
	all, err := locker.Holders(ctx)
	if err != nil {
		return nil, err
	}
	if err := db.TellNames(ctx, all); err != nil {
		return nil, err
	}
	return named(ctx, db, sessionEntries(all), s.prefix)
}
