package flags

import "github.com/spf13/cobra"

// AddJSON adds the flag --json.
func AddJSON(cmd *cobra.Command, value *bool) {
	cmd.Flags().BoolVar(value, "json", false, "print a JSON object; see sqllock help json")
}
