package commands

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/console"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/flags"
	"github.com/sqllock/sqllock/schema"
)

func versionCommand(c *console.Console) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  flags.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			v := thisVersion()
			if asJSON {
				return exit.With(exit.Output, console.WriteJSON(c.Stdout, v, "  "))
			}
			_, err := fmt.Fprintln(c.Stdout, v)
			return exit.With(exit.Output, err)
		},
	}
	flags.AddJSON(cmd, &asJSON)
	return cmd
}

// version is the JSON output of the command. jsonHelp describes it.
type version struct {
	Release string `json:"release"`
	Tables  int    `json:"tables_version"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

// thisVersion returns the release, as the go command recorded it, and the version of the lease tables.
func thisVersion() version {
	release := "(unknown)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		release = info.Main.Version
	}
	return version{release, schema.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH}
}

// String returns the version on one line.
func (v version) String() string {
	return fmt.Sprintf("sqllock %s, lease tables version %d, %s %s/%s", v.Release, v.Tables, v.Go, v.OS, v.Arch)
}
