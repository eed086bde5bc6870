package locks

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/console"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/database"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/flags"
	"github.com/sqllock/sqllock/internal/lockname"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/schema"
)

const showHelp = `Says all that is known of the lock NAME, as a lease and as a session lock:
whether it is held, by whom and since when, by all of them if several hold it
together, and what they have attached. That the lock is free is no error: the
exit code is 0 either way. Scripts use --json, where a kind that nobody holds is
an object with the state "free".`

// show is one call of sqllock show.
type show struct {
	look
	name string
}

func showCommand(c *console.Console) *cobra.Command {
	s := &show{look: look{Console: c}}
	cmd := &cobra.Command{
		Use:   "show [flags] NAME",
		Short: "Say all about one lock",
		Long:  flags.Help(showHelp, flags.SeeAlso),
		RunE:  s.run,

		DisableFlagsInUseLine: true,
	}
	s.AddFlags(cmd)
	cmd.ValidArgsFunction = s.CompleteName(s.Console, cobra.ShellCompDirectiveNoFileComp)
	return cmd
}

func (s *show) run(cmd *cobra.Command, args []string) error {
	if err := s.parse(args); err != nil {
		return exit.With(exit.Usage, err)
	}
	seen, err := s.read(cmd, sources{s.lease, s.session})
	switch {
	case err != nil:
		return err
	case s.json:
		return exit.With(exit.Output, printJSON(s.Stdout, seen.entries, seen.now))
	}
	return exit.With(exit.Output, printDetails(s.Stdout, s.name, seen.entries, seen.now))
}

func (s *show) parse(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: sqllock show [flags] NAME")
	}
	s.name = args[0]
	return errors.Join(lockname.Check(s.name), s.CheckTables(s.kind))
}

func (s *show) lease(ctx context.Context, locker *leasetable.Locker) ([]leasetable.Info, error) {
	info, err := locker.Inspect(ctx, s.name)
	if err != nil {
		return nil, err
	}
	return []leasetable.Info{info}, nil
}

// session inspects the lock. On PostgreSQL it lists all holders, because several may share the lock.
func (s *show) session(ctx context.Context, db *database.Database, locker database.SessionLocker) ([]entry, error) {
	serverName, err := db.ServerNames(ctx)
	if err != nil {
		return nil, err
	}
	none := entry{name: s.name, serverName: serverName(s.name), kind: database.KindSession, state: stateFree}
	if db.Dialect == schema.Postgres {
		return s.sharers(ctx, locker, none)
	}
	one := none
	holder, held, err := locker.Holder(ctx, s.name)
	if held {
		one.state, one.Holder = stateHeld, database.Unsigned(s.name, holder)
	}
	return []entry{one}, err
}

// sharers returns all holders of the lock, or the entry none.
func (s *show) sharers(ctx context.Context, locker database.SessionLocker, none entry) ([]entry, error) {
	entries, err := holdersOf(ctx, locker, none.serverName)
	for i := range entries {
		entries[i].name, entries[i].Holder = s.name, database.Unsigned(s.name, entries[i].Holder)
	}
	if err == nil && len(entries) == 0 {
		entries = []entry{none}
	}
	return entries, err
}
