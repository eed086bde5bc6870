// Package commands puts the commands of sqllock together, and has those that need no package of their own.
package commands

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/bench"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/console"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/flags"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/locks"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/run"
)

const rootHelp = `sqllock runs a command while it holds a lock in a SQL database, so that of all
the machines and processes that use the same lock name only one runs at a time.
It also shows who holds which lock, and takes a lock from a holder.

  sqllock run nightly-report -- ./report.sh --month 7
  sqllock ls
  sqllock watch
  sqllock show nightly-report
  sqllock release --force nightly-report
  sqllock purge
  sqllock doctor`

// Run runs the program with these arguments. It returns its exit code, and whether SIGINT was what ended it. When ctx
// ends, it ends the command that runs under a lock as if the lock had been lost.
func Run(ctx context.Context, c *console.Console, args []string) (code int, interrupted bool) {
	root := rootCommand(c) //nolint:contextcheck // its commands get ctx from ExecuteContext
	help := &output{w: c.Stdout}
	root.SetOut(help)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if help.err != nil {
		err = exit.With(exit.Output, help.err)
	}
	c.Note(err)
	return exit.CodeOf(err), exit.Interrupted(err)
}

// output has what cobra prints: the help and --version. Cobra loses some of the errors, so output keeps the first.
type output struct {
	w   io.Writer
	err error
}

func (o *output) Write(text []byte) (int, error) {
	n, err := o.w.Write(text)
	o.err = cmp.Or(o.err, err)
	return n, err
}

func rootCommand(c *console.Console) *cobra.Command {
	root := &cobra.Command{
		Use:           "sqllock",
		Short:         "Run a command while holding a lock in a SQL database, and look after locks",
		Long:          flags.Help(rootHelp, flags.SeeAlso),
		Version:       thisVersion().String(),
		Args:          flags.NoArguments,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.DisableDefaultCmd = true // sqllock has its own completion command
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", flags.Columns)))
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetIn(c.Stdin)
	root.SetErr(c.Stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if cmd == root { // sqllock -n NAME COMMAND, as of flock
			return run.FlagError(cmd, err)
		}
		return flags.Error(cmd, err)
	})
	root.AddCommand(run.Command(c), bench.Command(c), doctorCommand(c), schemaCommand(c), versionCommand(c), completionCommand(c), manCommand(c))
	root.AddCommand(locks.Commands(c)...)
	root.AddCommand(topics()...)
	root.SetHelpCommand(helpCommand(root))
	return root
}
