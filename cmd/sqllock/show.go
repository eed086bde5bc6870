package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/internal/lockname"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/schema"
)

const showHelp = `Says all that is known of the lock NAME, as a lease and as a session lock: whether it is held, by
whom and since when, by all of them if several hold it together, and what they have attached.
That the lock is free is no error: the exit code is 0 either way. Scripts use --json, where a kind
that nobody holds is an object with the state "free".`

// show is one call of sqllock show.
type show struct {
	look
	name string
}

func showCommand(c *console) *cobra.Command {
	s := &show{look: look{console: c}}
	cmd := &cobra.Command{
		Use:   "show [flags] NAME",
		Short: "Say all about one lock",
		Long:  help(showHelp, jsonHelp, otherHelp),
		RunE:  s.run,

		DisableFlagsInUseLine: true,
	}
	s.addFlags(cmd)
	cmd.ValidArgsFunction = s.completeName(s.console, cobra.ShellCompDirectiveNoFileComp)
	return cmd
}

func (s *show) run(cmd *cobra.Command, args []string) error {
	if err := s.parse(args); err != nil {
		return fail(exitUsage, err)
	}
	seen, err := s.read(cmd, sources{s.lease, s.session})
	switch {
	case err != nil:
		return err
	case s.json:
		return fail(exitOutput, printJSON(s.Stdout, seen.entries, seen.now))
	}
	return fail(exitOutput, printDetails(s.Stdout, s.name, seen.entries, seen.now))
}

func (s *show) parse(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: sqllock show [flags] NAME")
	}
	s.name = args[0]
	return errors.Join(lockname.Check(s.name), s.checkTables(s.kind))
}

func (s *show) lease(ctx context.Context, locker *leasetable.Locker) ([]leasetable.Info, error) {
	info, err := locker.Inspect(ctx, s.name)
	if err != nil {
		return nil, err
	}
	return []leasetable.Info{info}, nil
}

// session inspects the lock. On PostgreSQL it lists all holders, because several may share the lock.
func (s *show) session(ctx context.Context, db *database, locker sessionLocker) ([]entry, error) {
	serverName, err := db.serverNames(ctx)
	if err != nil {
		return nil, err
	}
	none := entry{name: s.name, serverName: serverName(s.name), kind: kindSession, state: stateFree}
	if db.dialect == schema.Postgres {
		return s.sharers(ctx, locker, none)
	}
	one := none
	holder, held, err := locker.holder(ctx, s.name)
	if held {
		one.state, one.Holder = stateHeld, unsigned(s.name, holder)
	}
	return []entry{one}, err
}

// sharers returns all holders of the lock, or the entry none.
func (s *show) sharers(ctx context.Context, locker sessionLocker, none entry) ([]entry, error) {
	entries, err := holdersOf(ctx, locker, none.serverName)
	for i := range entries {
		entries[i].name, entries[i].Holder = s.name, unsigned(s.name, entries[i].Holder)
	}
	if err == nil && len(entries) == 0 {
		entries = []entry{none}
	}
	return entries, err
}
