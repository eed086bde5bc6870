package run

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/console"
	"github.com/sqllock/sqllock/event"
	"github.com/sqllock/sqllock/leasetable"
)

// hear reports what the Locker's log does not, or only with --verbose.
func (r *run) hear(_ context.Context, e sqllock.Event) {
	switch e.Kind {
	case event.Waiting:
		if r.nested() {
			r.warn("this may wait for itself", errNested)
		}
	case event.Retrying:
		if !r.verbose {
			r.told.Do(func() { r.warn("waiting: the database cannot be used for now", e.Err) })
		}
	case event.Lost: // it is logged
		select {
		case r.lossTold <- struct{}{}:
		default:
		}
	case event.RenewalFailed: // a Locker logs it at Debug, below the level of --verbose; without locks nothing is in danger
		if e.Locks > 0 {
			r.log.Warn("lock renewal failed", slog.Duration("took", e.Took), slog.Any("err", e.Err))
		}
	}
}

// awaitLossTold waits until the Locker has logged that the lock was lost: it does so in a goroutine of its own, and sqllock is about
// to end. A log that blocks delays the end no longer than a second.
func (r *run) awaitLossTold() {
	select {
	case <-r.lossTold:
	case <-time.After(time.Second):
	}
}

// warn reports something that is not a failure.
func (r *run) warn(what string, err error) {
	if r.verbose || r.LogFormat == console.LogJSON {
		r.Logger(r.line).Warn(what, slog.String("lock", r.name), slog.Any("err", err))
		return
	}
	_, _ = io.WriteString(r.line, console.Message(fmt.Errorf("%s: %w", what, err))+"\n") // a failure cannot be reported anywhere else
}

// logAcquired logs that the lock was acquired. The Locker logs its other events.
func (r *run) logAcquired(ctx context.Context, lock sqllock.Lock, took time.Duration) {
	attrs := []slog.Attr{slog.String("lock", r.name), slog.String("kind", r.kind), slog.Duration("took", took)}
	if lease, ok := lock.(*leasetable.Lease); ok {
		attrs = append(attrs, slog.Int64("token", lease.Token()))
	}
	r.log.LogAttrs(ctx, slog.LevelInfo, "lock acquired", attrs...)
}
