package commands

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/database"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/flags"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/run"
)

const locksHelp = `sqllock run takes one of two kinds of lock.

A lease, the default, is a row of a table, which sqllock renews while the
command runs:
  needs            tables, which sqllock schema apply makes; any server,
                   also behind a pooler, or SQLite
  ends             with the command, or when it was not renewed for --ttl
  sqllock killed   free after --ttl at most
  cut off          the command is told to end; free after --ttl at most
  server restarts  still held
  has              a token that rises with every holder; --shared,
                   --limit, --at-least

A session lock, --kind session, is an advisory lock (GET_LOCK on MySQL and
MariaDB) on a connection that sqllock keeps open while the command runs:
  needs            no table; PostgreSQL, MySQL or MariaDB, without a
                   pooler in between
  ends             with the command, with the connection, or when the
                   server heard nothing for --ttl
  sqllock killed   free at once
  cut off          the command is told to end; free after --ttl at most
  server restarts  lost: the command is told to end
  has              no token; --shared on PostgreSQL
  is shown         by what its session calls itself, to those who may see
                   that: application_name, or the attribute program_name
                   of MySQL and MariaDB, has the owner and the name, if
                   that has no more than 36 bytes; what is not printable
                   ASCII counts as three

Take a session lock for something short, such as a migration; a lease for what
takes long, has to outlast a restart of the database, or writes where a token is
compared. Neither keeps out the other.`

const environmentHelp = `sqllock reads
  SQLLOCK_DB        the database, unless --db or --db-file names it
  DATABASE_URL      not for the database: that it is set is said when
                    none is named
  PGHOST, PGUSER, PGPASSWORD, PGPASSFILE, PGSSLMODE and others
                    PostgreSQL's own, for what the name of such a
                    database leaves open
  XDG_STATE_HOME, HOME, on Windows LocalAppData
                    where the SQLite file is when no database is named
  TERM              dumb: nothing is changed in place on a terminal
  NO_COLOR          anything: sqllock watch has no colours`

// topics returns the help topics that are not commands.
func topics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "database", Short: "How a database is named, and which it is without", Long: database.Help},
		{Use: "environment", Short: "The variables that sqllock reads, and those it sets", Long: flags.Help(environmentHelp, run.EnvironmentHelp)},
		{Use: "exit-codes", Short: "What the exit code says", Long: flags.Help(exit.Help())},
		{Use: "json", Short: "What --json prints, and what of it stays", Long: jsonHelp()},
		{Use: "locks", Short: "Leases and session locks: which to take, and what ends it", Long: locksHelp},
	}
}

// helpCommand returns a help command like that of cobra, but it also completes topics, and it refuses unknown
// arguments.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND or TOPIC]",
		Short: "Explain a command or a topic",
		ValidArgsFunction: func(_ *cobra.Command, args []string, start string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
			cmd, _, _ := root.Find(args)
			for _, c := range cmd.Commands() {
				if !c.Hidden && strings.HasPrefix(c.Name(), start) {
					names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(help *cobra.Command, args []string) error {
			cmd, unknown, _ := root.Find(args)
			if err := flags.NoArguments(help, unknown); err != nil {
				return err
			}
			cmd.InitDefaultHelpFlag() // so that the help shows it
			return cmd.Help()
		},

		DisableFlagsInUseLine: true,
	}
}
