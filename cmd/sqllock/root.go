package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
	root.CompletionOptions.DisableDefaultCmd = true // sqllock has its own completion command
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

// plain matches a word that may be shown: a mistyped command or flag, but not a database URL or password in the wrong
// place.
var plain = regexp.MustCompile(`^[a-z-]+$`)

// flagError says which flag is wrong, and what it accepts. It hides what may be a part of a database URL.
func flagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	var unknown *pflag.NotExistError
	switch {
	case errors.As(err, &invalid):
		return badValue(invalid)
	case errors.As(err, &unknown):
		return fmt.Errorf("%s; see %s --help", unknownFlag(cmd.Flags(), unknown), cmd.CommandPath())
	case strings.ContainsAny(err.Error(), "@=") || strings.Contains(err.Error(), "://"):
		return fmt.Errorf("an argument that begins with -- has no name of a flag; see %s --help", cmd.CommandPath())
	}
	return err
}

// badValue says what the value of a flag should be.
func badValue(err *pflag.InvalidValueError) error {
	flag, value := err.GetFlag(), " "+strconv.Quote(err.GetValue())
	if strings.ContainsAny(value, "@=") || strings.Contains(value, "://") {
		value = ""
	}
	is := "it is " + map[string]string{"int": "a whole number", "duration": "a time such as 90s, 5m or 1h", "bool": "true or false"}[flag.Value.Type()]
	if cause := err.Unwrap(); is == "it is " && cause != nil {
		is = cause.Error()
	}
	return fmt.Errorf("invalid argument%s for %q flag: %s", value, "--"+flag.Name, is)
}

// unknownFlag describes an unknown flag, and suggests the flag that was probably meant.
func unknownFlag(flags *pflag.FlagSet, err *pflag.NotExistError) string {
	name, dashes := err.GetSpecifiedName(), "--"
	if letters, _, _ := strings.Cut(err.GetSpecifiedShortnames(), "="); letters != "" {
		if flags.Lookup(letters) != nil {
			return fmt.Sprintf("unknown flag: -%s; it is --%s", letters, letters)
		}
		name, dashes = letters, "-"
	}
	if plain.MatchString(name) && (dashes == "--" || len(name) == 1) {
		return "unknown flag: " + dashes + name
	}
	begins := ""
	flags.VisitAll(func(flag *pflag.Flag) {
		if strings.HasPrefix(name, flag.Name) && len(flag.Name) > len(begins) {
			begins = flag.Name
		}
	})
	if begins != "" {
		return fmt.Sprintf("unknown flag that begins as --%s does: a blank or a = stands after that", begins)
	}
	return "a flag is not known"
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

// place has the flags of every command that uses a database: which database, and which tables.
type place struct {
	url    string
	file   string // the file that has the URL
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

// checkTables refuses --prefix and --schema for a kind of lock that has no tables.
func (p *place) checkTables(kind string) error {
	if kind == kindSession && (p.tables.Prefix != "" || p.tables.Schema != "") {
		return errors.New("--prefix and --schema are for leases: a session lock has no table")
	}
	return nil
}

// schemaError says which command creates the tables, with the flags of this call.
func (p *place) schemaError(err error) error {
	command := "sqllock schema apply"
	switch {
	case p.file != "":
		command += " --db-file …"
	case p.url != "":
		command += " --db …"
	}
	if p.tables.Prefix != "" {
		command += " --prefix " + p.tables.Prefix
	}
	if p.tables.Schema != "" {
		command += " --schema " + p.tables.Schema
	}
	if p.file == "" && p.url == "" {
		command += " (the database is that of SQLLOCK_DB)"
	}
	return fmt.Errorf("the tables are missing in this database, or are of another version; create them with: %s (%w)", command, lastOf(err))
}

// lastOf returns the last of the errors that err joins: the answer of the database, without the advice before it.
func lastOf(err error) error {
	var several interface{ Unwrap() []error }
	for errors.As(err, &several) {
		all := several.Unwrap()
		err = all[len(all)-1]
	}
	return err
}
