package leasetable_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/memory"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// errSilent is the error of a server that did not answer.
var errSilent = &dberr.Error{Err: errCut, Transient: true}

// silence answers nothing for a time, and counts how often it was asked.
func silence(asked *atomic.Int64, d time.Duration) error {
	asked.Add(1)
	pass(d)
	return errSilent
}

// mustFailTogether has several goroutines call f, a millisecond after each other. All must return the error within d.
func mustFailTogether(t *testing.T, d time.Duration, f func(i int) error) {
	t.Helper()
	began := time.Now()
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if err := f(i); !errors.Is(err, errCut) {
				t.Errorf("caller %d: %v", i, err)
			}
			if took := time.Since(began); took > d {
				t.Errorf("caller %d had its error after %v; want %v", i, took, d)
			}
		})
		pass(time.Millisecond)
	}
	all.Wait()
}

func TestCallersWaitTogetherForALeaseThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	const slow = 15 * time.Second
	names := make([]string, 20)
	for i := range names {
		names[i] = fmt.Sprint("name ", i)
	}
	for how, try := range map[string]func(l *leasetable.Locker) func(i int) error{
		"TryAcquire": func(l *leasetable.Locker) func(i int) error {
			return func(i int) error {
				_, err := l.TryAcquire(context.Background(), names[i])
				return err
			}
		},
		"TryAcquireAll": func(l *leasetable.Locker) func(i int) error {
			return func(int) error {
				_, err := l.TryAcquireAll(context.Background(), names)
				return err
			}
		},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &scripted{Store: memory.NewServer(memory.Postgres).Store()}
				var asked atomic.Int64
				s.open = func(context.Context, store.LeaseRow, time.Duration) (time.Time, error) {
					return time.Time{}, silence(&asked, slow)
				}
				l := keep(t, s)
				if how == "TryAcquireAll" {
					began := time.Now()
					if err := try(l)(0); !errors.Is(err, errCut) || time.Since(began) > slow {
						t.Errorf("after %v: %v", time.Since(began), err)
					}
				} else {
					mustFailTogether(t, slow, try(l))
				}
				if n := asked.Load(); n != 1 {
					t.Errorf("the lease was opened %d times", n)
				}
				s.open = nil
				release(t, take(t, l, "x"))
			})
		})
	}
}

func TestCallersWaitTogetherForPermitsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		const slow = 3 * time.Second
		s := &scripted{Store: memory.NewServer(memory.Postgres).Store()}
		l := keep(t, s)
		kept := take(t, l, "kept")
		var asked atomic.Int64
		s.permits = func(context.Context, string) (store.State, error) { return store.State{}, silence(&asked, slow) }
		mustFailTogether(t, slow, func(int) error {
			_, err := l.TryAcquire(context.Background(), "x", leasetable.WithLimit(2))
			return err
		})
		if n := asked.Load(); n != 1 {
			t.Errorf("the permits were read %d times", n)
		}
		s.permits = nil
		release(t, take(t, l, "x", leasetable.WithLimit(2)), kept)
	})
}

// What is not for all who wait, such as that the name is held, is not shared.
func TestAPermitThatIsRefusedIsAskedForByEachCaller(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{Store: memory.NewServer(memory.Postgres).Store()}
		l := keep(t, s)
		var asked atomic.Int64
		s.permits = func(ctx context.Context, name string) (store.State, error) {
			asked.Add(1)
			pass(time.Millisecond)
			return s.Store.ReadPermits(ctx, name)
		}
		held := take(t, l, "x", leasetable.WithLimit(1))
		before := asked.Load()
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if _, err := l.TryAcquire(t.Context(), "x", leasetable.WithLimit(1)); !errors.Is(err, sqllock.ErrHeld) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := asked.Load() - before; n != 5 {
			t.Errorf("the permits were read %d times", n)
		}
		release(t, held)
	})
}
