package main

import "github.com/spf13/cobra"

// completeFlag makes completion offer these values for a flag.
func completeFlag(cmd *cobra.Command, flag string, values ...cobra.Completion) {
	// It fails only if there is no such flag.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// completeFiles makes completion offer files for a flag, which it does not do otherwise.
func completeFiles(cmd *cobra.Command, flag string) {
	// It fails only if there is no such flag.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault))
}
