package leasetable_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/event"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/memory"
	"github.com/sqllock/sqllock/sqltest"
)

func TestWhatHappensToLocksIsTold(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		locktest.Events(t, func(t *testing.T, hook func(context.Context, sqllock.Event), logger *slog.Logger) locktest.Locker {
			t.Helper()
			return ofAnyKind(newLocker(t, db.DB, leasetable.WithHook(hook), leasetable.WithLogger(logger), leasetable.WithTTL(survivingTTL)))
		}, locktest.Options{Kind: "lease", Lose: func(t *testing.T, name string) { t.Helper(); expireLease(t, db, name) }})
	})
}

func TestWhatAnAdministratorDoesIsLogged(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		server := memory.NewServer(memory.Postgres)
		admin := keep(t, server.Store(), leasetable.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{
			ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			},
		}))))
		other := keep(t, server.Store(), leasetable.WithOwner("other"), leasetable.WithTTL(time.Minute))
		take(t, other, "x")
		for range 2 {
			if _, err := admin.ForceRelease(t.Context(), "x"); err != nil {
				t.Error(err)
			}
		}
		take(t, other, "x")
		_, err := admin.ForceRelease(t.Context(), "x", leasetable.IfToken(1))
		if !errors.Is(err, sqllock.ErrHeld) {
			t.Errorf("the forced release of an old token: %v", err)
		}
		cutOff := &scripted{Store: server.Store(), renew: func(context.Context, []byte) (bool, int64, error) { return false, 0, errCut }}
		take(t, keep(t, cutOff), "y")
		pass(2 * time.Second)
		for range 2 {
			if _, err := admin.Purge(t.Context(), 0); err != nil {
				t.Error(err)
			}
		}
		want := `level=WARN msg="forced release of a lock" lock=x outcome=done owner=other token=1
level=INFO msg="forced release of a lock" lock=x outcome="not held"
level=WARN msg="forced release of a lock" lock=x outcome=failed err=` + strconv.Quote(err.Error()) + `
level=INFO msg="purge of expired leases" deleted=1 ago=0s
`
		if log.String() != want {
			t.Errorf("the log has\n%swant\n%s", log.String(), want)
		}
	})
}

func TestATicketThatIsNoneIsToldAsAFailedAcquisition(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		var told []sqllock.Event
		l := keep(t, memory.NewServer(memory.Postgres).Store(), leasetable.WithHook(func(_ context.Context, e sqllock.Event) {
			told = append(told, e)
		}))
		_, err := l.Adopt(t.Context(), "no ticket")
		if !errors.Is(err, leasetable.ErrTicket) || len(told) != 1 || told[0].Kind != event.Failed || !errors.Is(told[0].Err, leasetable.ErrTicket) {
			t.Errorf("Adopt: %v; told %v", err, told)
		}
	})
}

// Close cuts it off. No lock is lost by that.
func TestARenewalThatCloseCutsOffIsNotToldAsFailed(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{Store: memory.NewServer(memory.Postgres).Store()}
		s.renew = func(ctx context.Context, _ []byte) (bool, int64, error) {
			<-ctx.Done()
			return false, 0, errCut
		}
		l := keep(t, s, leasetable.WithTTL(time.Hour), leasetable.WithHook(func(_ context.Context, e sqllock.Event) {
			if e.Kind == event.RenewalFailed {
				t.Errorf("told: %v", e)
			}
		}))
		lock := take(t, l, "x")
		renewed := make(chan error, 1)
		go func() { renewed <- lock.Renew(t.Context()) }()
		synctest.Wait() // the renewal is under way
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := <-renewed; !errors.Is(err, sqllock.ErrClosed) {
			t.Errorf("Renew: %v", err)
		}
	})
}

// The export fails, and the database confirms the release.
func TestALockThatIsReleasedInsteadOfAnExportIsNotToldAsLost(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		var told []event.Kind
		refused := &dberr.Error{Err: errors.New("refused"), OutcomeKnown: true}
		s := &scripted{Store: memory.NewServer(memory.Postgres).Store()}
		s.move = func(context.Context, string, int64, []byte, []byte) (bool, error) { return false, refused }
		l := keep(t, s, leasetable.WithHook(func(_ context.Context, e sqllock.Event) {
			if e.Name != "" {
				told = append(told, e.Kind)
			}
		}))
		lock := take(t, l, "x")
		if _, err := lock.Export(t.Context(), time.Hour); !errors.Is(err, refused) || !strings.Contains(err.Error(), "released instead") {
			t.Errorf("the export: %v", err)
		}
		if want := []event.Kind{event.Acquired, event.Released}; !slices.Equal(told, want) {
			t.Errorf("told %q; want %q", told, want)
		}
	})
}

func TestTheLeaseThatEndsFirstSaysHowLongTheLockerHolds(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	var holds event.Holds
	l := newLocker(t, withTables(t, sqltest.SQLite(t)).DB, leasetable.WithHook(func(_ context.Context, e sqllock.Event) {
		if e.Kind == event.Acquired {
			holds = e.Locker.Holds
		}
	}))
	lasts := func(least, most time.Duration) {
		t.Helper()
		if left, held := holds.Remaining(); !held || left <= least || left > most {
			t.Errorf("its locks last for %v, %v; want %v to %v", left, held, least, most)
		}
	}
	long := take(t, l, "long", sqllock.WithTTL(24*time.Hour))
	lasts(time.Hour, 24*time.Hour)
	short := take(t, l, "short", sqllock.WithTTL(time.Hour))
	lasts(time.Minute, time.Hour)
	if err := short.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	lasts(time.Hour, 24*time.Hour)
	if err := long.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left, held := holds.Remaining(); held {
		t.Errorf("a Locker that holds nothing says that it lasts for %v", left)
	}
}
