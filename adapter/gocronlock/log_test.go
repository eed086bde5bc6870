package gocronlock_test

import (
	"bytes"
	"context"
	"errors"
	"log"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/adapter/gocronlock"
	"github.com/sqllock/sqllock/event"
	"github.com/sqllock/sqllock/internal/adaptertest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// records is the log of a machine.
type records struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *records) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

// logger returns a logger that writes to r at every level.
func (r *records) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(r, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// lines returns what was logged at a level.
func (r *records) lines(level slog.Level) (lines []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for line := range strings.Lines(r.text.String()) {
		if strings.Contains(line, "level="+level.String()) {
			lines = append(lines, line)
		}
	}
	return lines
}

func newLoggedLocker(t *testing.T, l *leasetable.Locker) (*gocronlock.Locker, *records) {
	t.Helper()
	r := new(records)
	locker, err := gocronlock.NewLocker(l, time.Hour, gocronlock.WithLogger(r.logger()))
	if err != nil {
		t.Fatal(err)
	}
	return locker, r
}

func TestASkippedRunIsLoggedAtDebug(t *testing.T) {
	t.Parallel()
	adaptertest.Leases(t, func(t *testing.T, p adaptertest.Place) {
		first, log := newLoggedLocker(t, p.Leases(t))
		lock, err := first.Lock(t.Context(), "tick")
		if err == nil {
			err = lock.Unlock(t.Context())
		}
		if err != nil || log.text.Len() > 0 {
			t.Errorf("the first machine: %v, and logs %s", err, log.text.String())
		}
		second, log := newLoggedLocker(t, p.Leases(t))
		_, err = second.Lock(t.Context(), "tick")
		if !errors.Is(err, sqllock.ErrHeld) || len(log.lines(slog.LevelDebug)) != 1 || len(log.lines(slog.LevelError)) != 0 {
			t.Errorf("the second machine: %v, and logs %s", err, log.text.String())
		}
	})
}

func TestALossIsLogged(t *testing.T) {
	t.Parallel()
	adaptertest.Leases(t, func(t *testing.T, p adaptertest.Place) {
		locker, log := newLoggedLocker(t, p.Leases(t))
		lock, err := locker.Lock(t.Context(), "tick")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Leases(t).ForceRelease(t.Context(), "tick"); err != nil {
			t.Fatal(err)
		}
		if err := lock.Unlock(t.Context()); !errors.Is(err, sqllock.ErrLost) {
			t.Errorf("Unlock: %v", err)
		}
		if errs := log.lines(slog.LevelError); len(errs) != 1 || !strings.Contains(errs[0], "lock=tick") || !strings.Contains(errs[0], "its lock ended before") {
			t.Errorf("it logs %v", errs)
		}
	})
}

func TestANilLoggerLogsNothing(t *testing.T) {
	t.Parallel()
	p := adaptertest.At(t, sqltest.EngineSQLite, true)
	var none *slog.Logger
	for _, option := range []gocronlock.Option{gocronlock.WithLogger(nil), gocronlock.WithLogger(none)} {
		locker, err := gocronlock.NewLocker(p.Leases(t), time.Hour, option)
		if err != nil {
			t.Fatal(err)
		}
		lock, err := locker.Lock(t.Context(), "tick")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := locker.Lock(t.Context(), "tick"); !errors.Is(err, sqllock.ErrHeld) { // logged at Debug
			t.Errorf("Lock of a held name: %v", err)
		}
		if _, err := p.Leases(t).ForceRelease(t.Context(), "tick"); err != nil {
			t.Fatal(err)
		}
		if err := lock.Unlock(t.Context()); !errors.Is(err, sqllock.ErrLost) { // logged at Error
			t.Errorf("Unlock: %v", err)
		}
	}
}

func TestARunOfASchedulerThatShutsDownIsNotLogged(t *testing.T) {
	t.Parallel()
	p := adaptertest.At(t, sqltest.EngineSQLite, true)
	locker, log := newLoggedLocker(t, p.Leases(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := locker.Lock(ctx, "tick"); !errors.Is(err, context.Canceled) || log.text.Len() > 0 {
		t.Errorf("Lock: %v, and it logs %s", err, log.text.String())
	}
}

func TestByDefaultMissingTablesAreLogged(t *testing.T) { //nolint:paralleltest // it changes the default logger
	logger, writer, flags := slog.Default(), log.Writer(), log.Flags()
	defer func() {
		slog.SetDefault(logger)
		log.SetOutput(writer)
		log.SetFlags(flags)
	}()
	r := new(records)
	slog.SetDefault(slog.New(slog.NewTextHandler(r, nil)))
	p := adaptertest.Place{Database: sqltest.Postgres(t)} // without the lease tables
	m := newMachine(t, 0, func(m *machine) gocron.SchedulerOption {
		locker, err := gocronlock.NewLocker(p.Leases(t), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return gocron.WithDistributedLocker(observedLocker{locker, m})
	})
	m.tick(t)
	errs := r.lines(slog.LevelError)
	if len(errs) != 1 || !strings.Contains(errs[0], "lock=tick") || !strings.Contains(errs[0], sqllock.ErrSchema.Error()) {
		t.Errorf("it ran %d times, and logs %v", m.runs.Load(), errs)
	}
}

func TestAFailedCampaignIsLoggedOnce(t *testing.T) {
	t.Parallel()
	p := adaptertest.Place{Database: sqltest.Postgres(t)} // without the lease tables
	var campaigns atomic.Int64
	leases := p.Leases(t, leasetable.WithHook(func(_ context.Context, e sqllock.Event) {
		if e.Kind == event.Failed {
			campaigns.Add(1)
		}
	}))
	r := new(records)
	e, err := gocronlock.NewElector(leases, "the scheduler", gocronlock.WithLogger(r.logger()))
	if err != nil {
		t.Fatal(err)
	}
	until(t, "it has campaigned twice", func() bool { return campaigns.Load() >= 2 })
	if err := e.Close(); !errors.Is(err, sqllock.ErrSchema) {
		t.Errorf("Close: %v", err)
	}
	errs := r.lines(slog.LevelError)
	if len(errs) != 1 || !strings.Contains(errs[0], sqllock.ErrSchema.Error()) {
		t.Errorf("it logs %v", errs)
	}
}
