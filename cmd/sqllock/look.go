package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
)

// look is what ls and show have in common: they read who holds what, of both kinds of lock.
type look struct {
	*Main
	place
	kind string
	json bool
}

func (l *look) addFlags(cmd *cobra.Command) {
	l.place.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&l.kind, "kind", kindAll, "`kind` of lock: lease, session or all")
	completeFlag(cmd, "kind", kindLease, kindSession, kindAll)
	flags.BoolVar(&l.json, "json", false, "print a JSON array")
}

func (l *look) check() error {
	if l.kind != kindLease && l.kind != kindSession && l.kind != kindAll {
		return fmt.Errorf("--kind is %s, %s or %s", kindLease, kindSession, kindAll)
	}
	return l.checkTables(l.kind)
}

// sources are the questions that a command asks of either kind of lock.
type sources struct {
	leases   func(context.Context, *leasetable.Locker) ([]leasetable.Info, error)
	sessions func(context.Context, *database, sessionLocker) ([]entry, error)
}

// read asks them, and for the time. Of all kinds one may be missing, which is said on stderr.
func (l *look) read(cmd *cobra.Command, from sources) (entries []entry, now time.Time, err error) {
	ctx := cmd.Context()
	db, err := l.openDatabase(cmd, &l.place)
	if err != nil {
		return nil, now, err
	}
	defer db.close()
	var missing []error
	if l.kind != kindSession {
		infos, err := l.readLeases(ctx, db, from)
		switch {
		case errors.Is(err, sqllock.ErrSchema):
			missing = append(missing, l.schemaError(err))
		case err != nil:
			return nil, now, err
		}
		entries = leaseEntries(infos)
	}
	if l.kind == kindSession || l.kind == kindAll && db.hasSessions() {
		more, err := l.readSessions(ctx, db, from)
		switch {
		case notShown(err):
			missing = append(missing, fmt.Errorf("session locks cannot be shown: %w", err))
		case err != nil:
			return nil, now, err
		}
		entries = append(entries, more...)
	}
	if l.kind != kindAll && len(missing) == 1 || len(missing) == 2 {
		return nil, now, fail(exitUnavailable, errors.Join(missing...))
	}
	for _, err := range missing {
		l.note(err)
	}
	now, err = db.now(ctx)
	return entries, now, fail(exitUnavailable, err)
}

func (l *look) readLeases(ctx context.Context, db *database, from sources) ([]leasetable.Info, error) {
	locker, err := l.leases(ctx, db)
	if err != nil {
		return nil, err
	}
	defer func() { _ = locker.Close() }() // it holds nothing
	infos, err := from.leases(ctx, locker)
	return infos, fail(exitUnavailable, err)
}

func (l *look) readSessions(ctx context.Context, db *database, from sources) ([]entry, error) {
	locker, err := db.session(lookTTL, operator, false)
	if err != nil {
		return nil, fail(exitUsage, err)
	}
	defer func() { _ = locker.Close() }() // it holds nothing
	entries, err := from.sessions(ctx, db, locker)
	return entries, fail(exitUnavailable, err)
}
