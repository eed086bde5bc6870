package locks

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/console"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/database"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/flags"
	"github.com/sqllock/sqllock/leasetable"
)

const lsHelp = `Lists who holds which lock, and which leases have expired without anybody
following. Names that are free are left out: they were released, their holder
has ended in an orderly way, or it died and was forgotten (sqllock purge). With
PREFIX it lists the locks whose names begin with it.

A server has only hashes of the names of session locks. The names that sqllock
run takes are known from what its sessions call themselves, unless they are
long: up to 36 bytes always fit, next to an owner that is shortened if need be;
in a name that is not all printable ASCII, a byte that is not counts as three.
Of other names PREFIX finds the one that is called so, and those whose hash
begins with it.

  SINCE    how long ago the lock was taken; for a session lock, how long
           ago its session began
  LEFT     when the lease expires unless it is renewed; "kept": it was
           released, but not yet free
  WAITING  how many wait for a session lock; 1+ of a lease, whose table
           notes only the first of them. Shown if anybody waits

HOST/PID of a session lock is the address of its client and the number of its
session. Session locks are those of the database on PostgreSQL and of the whole
server on MySQL and MariaDB, by any program. MariaDB shows them, and their
owners, only with performance_schema. Long texts are shortened, and what is not
printable is quoted; --json has everything.`

// ls is one call of sqllock ls.
type ls struct {
	search
	held, expired bool
}

func lsCommand(c *console.Console) *cobra.Command {
	l := &ls{search: search{look: look{Console: c}}}
	cmd := &cobra.Command{
		Use:   "ls [flags] [PREFIX]",
		Short: "List who holds which lock",
		Long:  flags.Help(lsHelp, flags.SeeAlso),
		RunE:  l.run,

		DisableFlagsInUseLine: true,
	}
	l.AddFlags(cmd)
	cmd.Flags().BoolVar(&l.held, "held", false, "only locks that are held")
	cmd.Flags().BoolVar(&l.expired, "expired", false, "only leases of holders that were killed or cut off")
	return cmd
}

func (l *ls) run(cmd *cobra.Command, args []string) error {
	if err := l.parse(args); err != nil {
		return exit.With(exit.Usage, err)
	}
	seen, err := l.read(cmd, sources{l.list, l.listSessions})
	switch {
	case err != nil:
		return err
	case l.json:
		return exit.With(exit.Output, printJSON(l.Stdout, seen.entries, seen.now))
	case len(seen.entries) == 0:
		l.Note(seen.nothing())
		return nil
	}
	return exit.With(exit.Output, printTable(l.Stdout, seen.entries, seen.now, console.Width(l.Stdout)))
}

func (l *ls) parse(args []string) error {
	if err := l.search.parse(args, "usage: sqllock ls [flags] [PREFIX]"); err != nil {
		return err
	}
	if l.held && l.expired {
		return errors.New("--held and --expired have no lock in common: leave out one of them")
	}
	if l.expired && l.kind == database.KindSession {
		return errors.New("--expired is for leases: a session lock ends with its session")
	}
	if l.expired {
		l.kind = database.KindLease
	}
	return nil
}

func (l *ls) list(ctx context.Context, locker *leasetable.Locker) ([]leasetable.Info, error) {
	only := leasetable.Only(func(i leasetable.Info) bool { return i.Held || i.Expired })
	switch {
	case l.held:
		only = leasetable.OnlyHeld()
	case l.expired:
		only = leasetable.OnlyExpired()
	}
	return locker.List(ctx, l.prefix, only)
}
