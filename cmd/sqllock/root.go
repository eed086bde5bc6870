package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/schema"
)

const rootHelp = `sqllock runs a command while it holds a lock in a SQL database, so that of all the
machines and processes that use the same lock name only one runs at a time. It also shows who
holds which lock, and takes a lock from a holder.

  sqllock run nightly-report -- ./report.sh --month 7
  sqllock ls
  sqllock watch
  sqllock show nightly-report
  sqllock release --force nightly-report
  sqllock purge
  sqllock doctor`

// help joins the parts of a help text.
func help(parts ...string) string {
	return strings.TrimRight(strings.Join(parts, "\n\n"), "\n")
}

func (m *Main) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "sqllock",
		Short:         "Run a command while holding a lock in a SQL database, and look after locks",
		Long:          help(rootHelp, otherHelp),
		Version:       version(),
		Args:          noArguments,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.DisableDefaultCmd = true // there is another one
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetIn(m.Stdin)
	root.SetOut(m.Stdout)
	root.SetErr(m.Stderr)
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(m.runCommand(), m.lsCommand(), m.showCommand(), m.watchCommand(), m.releaseCommand(), m.purgeCommand(),
		m.doctorCommand(), m.benchCommand(), m.schemaCommand(), m.versionCommand(), m.completionCommand())
	root.AddCommand(topics()...)
	root.SetHelpCommand(helpCommand(root))
	return root
}

// plain matches a word that may be shown: a mistyped command or flag, and not a database URL or
// password in the wrong place.
var plain = regexp.MustCompile(`^(unknown flag: --)?[a-z-]+$`)

// flagError hides what may be a part of a database URL.
func flagError(_ *cobra.Command, err error) error {
	text := err.Error()
	if strings.HasPrefix(text, "unknown") && !plain.MatchString(text) || strings.ContainsAny(text, "@=") || strings.Contains(text, "://") {
		return errors.New("the flags cannot be understood; see sqllock --help")
	}
	return err
}

// noArguments refuses arguments, without showing a database URL that was meant for --db.
func noArguments(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case plain.MatchString(args[0]):
		return fmt.Errorf("unknown command or argument %q; see %s --help", args[0], cmd.CommandPath())
	}
	return fmt.Errorf("unexpected argument; a database is named by --db, --db-file or SQLLOCK_DB; see %s --help", cmd.CommandPath())
}

// place is where the locks are: the flags that every command has that uses a database.
type place struct {
	url    string
	file   string // that has the URL
	tables schema.Tables
}

func (p *place) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&p.url, "db", "", "`URL` of the database; default $SQLLOCK_DB, then a file of your own")
	flags.StringVar(&p.file, "db-file", "", "`file` that has the URL, in its first line or as SQLLOCK_DB=…")
	completeFiles(cmd, "db-file")
	flags.StringVar(&p.tables.Prefix, "prefix", "", "`prefix` of the names of the tables (default sqllock_)")
	flags.StringVar(&p.tables.Schema, "schema", "", "PostgreSQL `schema` of the tables (default: the search path)")
}

// checkTables refuses to name tables for a kind of lock that has none.
func (p *place) checkTables(kind string) error {
	if kind == kindSession && (p.tables.Prefix != "" || p.tables.Schema != "") {
		return errors.New("--prefix and --schema are for leases: a session lock has no table")
	}
	return nil
}

// schemaError says which command makes the tables, as this one was called.
func (p *place) schemaError(err error) error {
	command := "sqllock schema apply --db …"
	switch {
	case p.file != "":
		command = "sqllock schema apply --db-file …"
	case p.url == "":
		command = "sqllock schema apply (the database is that of SQLLOCK_DB)"
	}
	if p.tables.Prefix != "" {
		command += " --prefix " + p.tables.Prefix
	}
	if p.tables.Schema != "" {
		command += " --schema " + p.tables.Schema
	}
	return fmt.Errorf("the tables are missing in this database, or are of another version; create them with: %s\n(%w)", command, lastOf(err))
}

// lastOf is the last of several errors that err is made of: what the database said, without the advice before it.
func lastOf(err error) error {
	var several interface{ Unwrap() []error }
	if !errors.As(err, &several) {
		return err
	}
	all := several.Unwrap()
	return all[len(all)-1]
}
