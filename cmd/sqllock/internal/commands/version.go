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
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  flags.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(c.Stdout, version())
			return exit.With(exit.Output, err)
		},
	}
}

// version returns the release, as the go command recorded it, and the version of the lease tables.
func version() string {
	release := "(unknown)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		release = info.Main.Version
	}
	return fmt.Sprintf("sqllock %s, lease tables version %d, %s %s/%s",
		release, schema.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
