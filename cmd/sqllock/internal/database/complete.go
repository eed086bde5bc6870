package database

import (
	"context"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/console"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/schema"
)

const mostCompletions = 200

// harmless matches a name without special meaning for any shell or terminal. Other users choose the names.
var harmless = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./:@%+=,-]*$`)

// CompleteName completes the argument NAME with the names of leases. For later arguments it returns the directive then.
//
// On any failure it offers nothing and reports nothing. It does not open an SQLite file, because that could create the
// file.
func (f *Flags) CompleteName(c *console.Console, then cobra.ShellCompDirective) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, then
		}
		return f.leaseNames(cmd, c, start), cobra.ShellCompDirectiveNoFileComp
	}
}

func (f *Flags) leaseNames(cmd *cobra.Command, c *console.Console, start string) (names []cobra.Completion) {
	ctx, cancel := context.WithTimeout(cmd.Context(), c.CompletionTime)
	defer cancel()
	db, err := f.FindDatabase(cmd, c)
	if err != nil {
		return nil
	}
	defer db.Close()
	if db.Dialect == schema.SQLite {
		return nil
	}
	locker, err := db.Lease(f.Tables, LookTTL, Operator)
	if err != nil {
		return nil
	}
	defer func() { _ = locker.Close() }() // it holds nothing
	infos, err := locker.List(ctx, start, leasetable.Only(func(i leasetable.Info) bool { return harmless.MatchString(i.Name) }))
	if err != nil {
		return nil
	}
	for _, info := range infos[:min(len(infos), mostCompletions)] {
		names = append(names, info.Name)
	}
	return names
}
