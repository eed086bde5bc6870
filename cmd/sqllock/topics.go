package main

import (
	"strings"

	"github.com/spf13/cobra"
)

const databaseHelp = `The database is named by --db, by a file (--db-file) or by the environment variable SQLLOCK_DB:
  postgres://user:password@host:5432/database     or keywords: host=… dbname=…
  mysql://user:password@host:3306/database        MySQL and MariaDB; or the Go driver's form,
                                                  user:password@tcp(host:3306)/database
  sqlite:PATH                                     a file, for the processes of one machine
In a URL, what is special in a password is percent-encoded. Everybody on the machine can see
the arguments of a program: put a password into SQLLOCK_DB, or into the file of --db-file. That
has the URL in its first line, or in a line SQLLOCK_DB=… among others, as .env files have: with or
without export, quotes and a comment behind it; nothing is expanded.

Without any, it is an SQLite file in your state folder ($XDG_STATE_HOME/sqllock/sqllock.db,
or ~/.local/state; on macOS ~/Library/Application Support, on Windows %LocalAppData%), which
locks out your own processes on this machine only. That is said on stderr; name the file
(sqlite:PATH) to have nothing said. A SQLLOCK_DB that is set and empty, as of a secret that is
missing, is an error. DATABASE_URL and its like are not read.

The tables of leases are created by themselves on SQLite; on a server by sqllock schema apply.`

const locksHelp = `sqllock run takes one of two kinds of lock.

A lease, the default, is a row of a table, which sqllock renews while the command runs:
  needs            tables, which sqllock schema apply makes; any server, also behind a pooler, or SQLite
  ends             with the command, or when it was not renewed for --ttl
  sqllock killed   free after --ttl at most
  cut off          the command is told to end; free after --ttl at most
  server restarts  still held
  has              a token that rises with every holder; --shared, --limit, --at-least

A session lock, --kind session, is an advisory lock (GET_LOCK on MySQL and MariaDB) on a connection
that sqllock keeps open while the command runs:
  needs            no table; PostgreSQL, MySQL or MariaDB, without a pooler in between
  ends             with the command, with the connection, or when the server heard nothing for --ttl
  sqllock killed   free at once
  cut off          the command is told to end; free after --ttl at most
  server restarts  lost: the command is told to end
  has              no token; --shared on PostgreSQL
  is shown         by what its session calls itself, to those who may see that: application_name, or the
                   attribute program_name of MySQL and MariaDB, has the owner and, if short, the name

Take a session lock for something short, such as a migration; a lease for what takes long, has to
outlast a restart of the database, or writes where a token is compared. Neither keeps out the other.`

const childHelp = `The command finds in its environment:
  SQLLOCK_NAME      the name of the lock
  SQLLOCK_OWNER     what the holder calls itself: --owner, or its default
  SQLLOCK_TOKEN     of a lease: a number that rises with every holder
  SQLLOCK_EXPIRES   of a lease: until when the lock was sure to last when the command was
                    started. sqllock ends the command then if no renewal succeeds before; as
                    renewals go on, a command usually runs past it. It is in UTC by the clock
                    of this machine, in the form 2026-01-31T23:59:59.999Z (RFC 3339).
SQLLOCK_DB is there if it was set, for other calls of sqllock; --db and --db-file are not.`

const environmentHelp = `sqllock reads
  SQLLOCK_DB        the database, unless --db or --db-file names it
  DATABASE_URL      not for the database: that it is set is said when none is named
  PGHOST, PGUSER, PGPASSWORD, PGPASSFILE, PGSSLMODE and others of PostgreSQL's own variables,
                    for what the name of a PostgreSQL database leaves open
  XDG_STATE_HOME, HOME, on Windows LocalAppData
                    where the SQLite file is when no database is named
  TERM              dumb: nothing is changed in place on a terminal
  NO_COLOR          anything: sqllock watch has no colours`

// otherHelp replaces the text of the topics in the help of commands.
const otherHelp = "How a database is named: sqllock help database. What the exit code says: sqllock help exit-codes."

// topics returns the help topics that are not commands.
func topics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "database", Short: "How a database is named, and which one it is without a name", Long: databaseHelp},
		{Use: "environment", Short: "The variables that sqllock reads, and those it sets", Long: help(environmentHelp, childHelp)},
		{Use: "exit-codes", Short: "What the exit code says", Long: help(exitCodes())},
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
			if err := noArguments(help, unknown); err != nil {
				return err
			}
			cmd.InitDefaultHelpFlag() // so that the help shows it
			return cmd.Help()
		},

		DisableFlagsInUseLine: true,
	}
}
