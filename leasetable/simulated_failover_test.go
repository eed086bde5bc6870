package leasetable_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/leasetable/internal/memory"
)

// failingOver returns a Locker, which holds a lock, and a function that has the server forget the last 50 ms. The name b has
// had one holder.
func failingOver(t *testing.T) (l *leasetable.Locker, failover func()) {
	t.Helper()
	server := memory.NewServer(memory.Postgres)
	s := &scripted{Store: server.Store()}
	var over atomic.Int64
	s.renew = func(ctx context.Context, id []byte) (bool, int64, error) {
		there, changes, err := s.Store.Renew(ctx, id)
		return there, changes + over.Load(), err // something may have happened to the locks, as after each failover
	}
	l = keep(t, s)
	take(t, l, "another")
	release(t, take(t, l, "b"))
	pass(100 * time.Millisecond)
	return l, func() {
		pass(10 * time.Millisecond)
		server.Failover(50 * time.Millisecond)
		over.Add(1)
	}
}

// A failover forgets a lock. Then the same Locker acquires the name again, with the token that the lock had. The first lock
// is lost, and its release does not free the name of the second. I18, I20, I23.
func TestALockThatAFailoverForgotIsLostThoughAnotherHasItsToken(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	limit := leasetable.WithLimit(2)
	for _, test := range []struct {
		name         string
		first, again []sqllock.Option
	}{
		{"whole", nil, nil},
		{"permit", []sqllock.Option{limit}, []sqllock.Option{limit}},
		{"permit and whole", []sqllock.Option{limit}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l, failover := failingOver(t)
				first, err := l.TryAcquire(t.Context(), "b", test.first...)
				if err != nil {
					t.Fatal(err)
				}
				failover()
				again, err := l.Acquire(t.Context(), "b", test.again...)
				if err != nil {
					t.Fatal(err)
				}
				if again.Token() != first.Token() {
					t.Fatalf("the tokens are %d and %d", again.Token(), first.Token())
				}
				pass(2 * time.Second)
				if cause := context.Cause(first.Context()); !errors.Is(cause, sqllock.ErrLost) {
					t.Errorf("the first lock ended with: %v", cause)
				}
				if err := first.Release(t.Context()); !errors.Is(err, sqllock.ErrLost) {
					t.Errorf("the release of the first lock: %v", err)
				}
				pass(2 * time.Second)
				if err := context.Cause(again.Context()); err != nil {
					t.Errorf("the second lock ended with: %v", err)
				}
				release(t, again)
			})
		})
	}
}
