package flags

import "github.com/spf13/cobra"

// Complete makes completion offer these values for a flag.
func Complete(cmd *cobra.Command, flag string, values ...cobra.Completion) {
	// It fails only if there is no such flag.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// CompleteFiles makes completion offer files for a flag, which it does not do otherwise.
func CompleteFiles(cmd *cobra.Command, flag string) {
	// It fails only if there is no such flag.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault))
}
