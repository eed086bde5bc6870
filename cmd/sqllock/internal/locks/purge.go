package locks

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/console"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/database"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/flags"
)

const purgeHelp = `Deletes the leases that expired long ago: the rows that killed processes leave
behind. They are deleted one by one, so others are not held up. The locks of
these leases are free already, and the names keep their tokens; it is only no
longer known who held them last.`

// purge is one call of sqllock purge.
type purge struct {
	*console.Console
	database.Flags
	olderThan time.Duration
	json      bool
}

// jsonPurge is the JSON output of purge.
type jsonPurge struct {
	Deleted int64 `json:"deleted"`
}

func purgeCommand(c *console.Console) *cobra.Command {
	p := &purge{Console: c}
	cmd := &cobra.Command{
		Use:   "purge",
		Short: "Delete the leases that killed processes have left",
		Long:  flags.Help(purgeHelp, flags.SeeAlso),
		Args:  flags.NoArguments,
		RunE:  p.run,
	}
	p.AddFlags(cmd)
	cmd.Flags().DurationVar(&p.olderThan, "older-than", 24*time.Hour, "only leases that expired at least this `time` ago")
	flags.AddJSON(cmd, &p.json)
	return cmd
}

func (p *purge) run(cmd *cobra.Command, _ []string) error {
	if p.olderThan < 0 {
		return exit.With(exit.Usage, errors.New("--older-than is negative"))
	}
	db, err := p.OpenDatabase(cmd, p.Console)
	if err != nil {
		return err
	}
	defer db.Close()
	locker, err := p.Leases(cmd.Context(), db)
	if err != nil {
		return err
	}
	defer func() { _ = locker.Close() }() // it holds nothing
	deleted, err := locker.Purge(cmd.Context(), p.olderThan)
	switch {
	case errors.Is(err, sqllock.ErrSchema):
		return exit.With(exit.Unavailable, p.SchemaError(err))
	case err != nil:
		return exit.With(exit.Unavailable, fmt.Errorf("after %d leases were deleted: %w", deleted, err))
	case p.json:
		return exit.With(exit.Output, console.WriteJSON(p.Stdout, jsonPurge{deleted}, "  "))
	}
	_, err = fmt.Fprintf(p.Stdout, "leases deleted: %d\n", deleted)
	return exit.With(exit.Output, err)
}
