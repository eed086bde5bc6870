package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
)

const purgeHelp = `Deletes the leases that expired long ago: the rows that killed processes leave behind. Some
hundreds are deleted at a time, so others are not held up. The locks of these leases are free
already, and the names keep their tokens; it is only no longer known who held them last.`

// purge is one call of sqllock purge.
type purge struct {
	*console
	place
	olderThan time.Duration
}

func purgeCommand(c *console) *cobra.Command {
	p := &purge{console: c}
	cmd := &cobra.Command{
		Use:   "purge",
		Short: "Delete the leases that killed processes have left",
		Long:  help(purgeHelp, otherHelp),
		Args:  noArguments,
		RunE:  p.run,
	}
	p.addFlags(cmd)
	cmd.Flags().DurationVar(&p.olderThan, "older-than", 24*time.Hour, "only leases that expired at least this `time` ago")
	return cmd
}

func (p *purge) run(cmd *cobra.Command, _ []string) error {
	if p.olderThan < 0 {
		return fail(exitUsage, errors.New("--older-than is negative"))
	}
	db, err := p.openDatabase(cmd, p.console)
	if err != nil {
		return err
	}
	defer db.close()
	locker, err := p.leases(cmd.Context(), db)
	if err != nil {
		return err
	}
	defer func() { _ = locker.Close() }() // it holds nothing
	deleted, err := locker.Purge(cmd.Context(), p.olderThan)
	switch {
	case errors.Is(err, sqllock.ErrSchema):
		return fail(exitUnavailable, p.schemaError(err))
	case err != nil:
		return fail(exitUnavailable, fmt.Errorf("after %d leases were deleted: %w", deleted, err))
	}
	_, err = fmt.Fprintf(p.Stdout, "leases deleted: %d\n", deleted)
	return fail(exitOutput, err)
}
