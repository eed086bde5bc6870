package main

import (
	"context"

	"github.com/spf13/cobra"
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

// Run runs the program with these arguments and returns its exit code. When ctx ends, it ends the command that runs
// under a lock as if the lock had been lost.
func Run(ctx context.Context, c *console, args []string) int {
	root := rootCommand(c) //nolint:contextcheck // its commands get ctx from ExecuteContext
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	c.note(err)
	return codeOf(err)
}

func rootCommand(c *console) *cobra.Command {
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
	root.SetIn(c.Stdin)
	root.SetOut(c.Stdout)
	root.SetErr(c.Stderr)
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(runCommand(c), benchCommand(c), doctorCommand(c), schemaCommand(c), versionCommand(c), completionCommand(c))
	root.AddCommand(lockCommands(c)...)
	root.AddCommand(topics()...)
	root.SetHelpCommand(helpCommand(root))
	return root
}
