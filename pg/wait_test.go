package pg_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

// CREATE INDEX CONCURRENTLY waits for every older transaction. A wait for the lock must not be such a transaction. I47.
func TestTheHolderCanCreateAnIndexConcurrentlyWhileOthersWait(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	statement(t, db, "CREATE TABLE things (n int)")
	lock := mustTry(t, newLocker(t, db), "migrations")
	ctx, cancel := bounded(t)
	defer cancel()
	waiting := waitFor(ctx, t, db, newLocker(t, db), "migrations")
	if _, err := db.ExecContext(ctx, "CREATE INDEX CONCURRENTLY ON things (n)"); err != nil {
		t.Fatalf("CREATE INDEX CONCURRENTLY while another process waits for the lock: %v", err)
	}
	if len(waiting) > 0 {
		t.Fatal("nobody was waiting any more")
	}
	mustLive(t, lock)
	mustRelease(t, lock)
	out := <-waiting
	if out.err != nil {
		t.Fatal(out.err)
	}
	mustRelease(t, out.lock)
}

// Two keys whose halves have the same exclusive or have different gates: a waiter for one keeps nobody from the other. I47.
func TestAWaiterIsInNobodysWayWhoWantsAnotherKey(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	ctx, cancel := bounded(t)
	defer cancel()
	acquire := func(opt sqllock.Option) <-chan outcome {
		out := make(chan outcome, 1)
		go func() {
			lock, err := newLocker(t, db).Acquire(ctx, "it", opt)
			out <- outcome{lock, err}
		}()
		return out
	}
	keys := []sqllock.Option{pg.WithPair(1, 2), pg.WithPair(2, 1)}
	var held []sqllock.Lock
	for _, key := range keys {
		held = append(held, (<-acquire(key)).lock)
	}
	first := acquire(keys[0])
	eventually(t, "one waits", func() bool { return locksOn(t, db) == 4 }) // with its gate
	second := acquire(keys[1])
	eventually(t, "both wait", func() bool { return locksOn(t, db) > 4 })
	mustRelease(t, held[1])
	mustRelease(t, (<-second).lock)
	mustRelease(t, held[0])
	mustRelease(t, (<-first).lock)
}

// The server looks for a deadlock after a second. A program that holds the key by hand and runs CREATE INDEX CONCURRENTLY
// on the same session is not to be told of one: see sliceOf.
func TestNoSliceTakesTwiceAsLongAsTheServerWaitsBeforeItLooksForADeadlock(t *testing.T) {
	t.Parallel()
	for waited := time.Duration(0); waited < time.Minute; waited += 10 * time.Millisecond {
		if slice, _ := pg.SliceOf(waited, time.Hour, false, false); slice >= time.Second {
			t.Fatalf("after %v: a slice of %v without a seat", waited, slice)
		}
		slice, withGate := pg.SliceOf(waited, time.Hour, true, false)
		if slice < time.Second/2 || slice >= 2*time.Second {
			t.Fatalf("after %v: a slice of %v", waited, slice)
		}
		if waited < 4*time.Second && slice >= time.Second {
			t.Fatalf("after %v: a slice of %v", waited, slice)
		}
		if withGate > slice || withGate >= time.Second {
			t.Fatalf("after %v: a slice of %v, and of %v if it gets the gate", waited, slice, withGate)
		}
		if slice, withGate = pg.SliceOf(waited, time.Hour, false, true); withGate != slice {
			t.Fatalf("after %v: a slice of %v at the gate is one of %v", waited, slice, withGate)
		}
		if slice, withGate = pg.SliceOf(waited, time.Second/4, true, false); slice != time.Second/4 || withGate != slice {
			t.Fatalf("after %v: a slice of %v, and of %v with the gate, for a caller who has 250 ms left", waited, slice, withGate)
		}
	}
}

// An error does not prove that the lock is not held. It must not cost the session's other locks without telling their
// holders. I43.
func TestCancelsThatMeetAnAttemptLeaveNothingHeld(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqltest.Postgres(t)
	l := newLocker(t, db)
	keep := mustTry(t, l, "keep")
	ctx, stop := bounded(t)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for ctx.Err() == nil { // the server goes on with a statement whose context ends
			_, _ = db.ExecContext(t.Context(), `SELECT pg_cancel_backend(pid), pg_sleep(0.0005)
				FROM pg_stat_activity CROSS JOIN generate_series(1, 50)
				WHERE datname = current_database() AND application_name LIKE 'sqllock/%'`)
		}
	}()
	hit := 0
	// A busy machine rarely hits a statement.
	for began := time.Now(); ctx.Err() == nil && (hit == 0 || hit < 50 && time.Since(began) < 3*time.Second); {
		lock, err := l.TryAcquire(t.Context(), "a")
		if err != nil {
			hit++
			eventually(t, "the lock is not held after an error", func() bool { return ask[int](t, db, inLocks("count(*)", "true"), pg.Key("a")) == 0 })
			continue
		}
		if err := lock.Release(t.Context()); err != nil {
			hit++
			if !errors.Is(err, sqllock.ErrLost) {
				t.Fatal(err)
			}
		}
	}
	stop()
	<-stopped
	t.Logf("%d calls were hit", hit)
	if keep.Context().Err() != nil {
		mustBeLost(t, keep)
	} else {
		mustRelease(t, keep)
	}
	eventually(t, "nothing is held", func() bool { return locksOn(t, db) == 0 })
}

// A session may end during a handoff, during a wait or while it is shared. All waiters must continue, and nothing may
// be left. I42.
func TestSessionsThatEndAgainAndAgainLeaveNobodyWaiting(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqltest.Postgres(t)
	lockers := []sqllock.Locker{newLocker(t, db), newLocker(t, db)}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var busy sync.WaitGroup
	var taken atomic.Int64
	for i := range 12 {
		busy.Go(func() {
			for ctx.Err() == nil {
				lock, err := lockers[i%2].Acquire(ctx, "a")
				if err != nil {
					if ctx.Err() == nil && !sqllock.IsRetryable(err) {
						t.Errorf("Acquire: %v", err)
					}
					continue
				}
				taken.Add(1)
				if err := lock.Release(ctx); err != nil && !errors.Is(err, sqllock.ErrLost) {
					t.Errorf("Release: %v", err)
				}
			}
		})
	}
	for range 30 {
		before := taken.Load()
		eventually(t, "the lock goes round", func() bool { return taken.Load() > before+100 })
		statement(t, db, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name LIKE 'sqllock/%'`)
	}
	cancel()
	busy.Wait()
	for _, l := range lockers {
		eventually(t, "the Locker has a session that lives", func() bool {
			lock, err := l.Acquire(t.Context(), "a")
			return err == nil && lock.Release(t.Context()) == nil
		})
	}
	eventually(t, "nobody holds or waits", func() bool { return locksOn(t, db) == 0 })
}
