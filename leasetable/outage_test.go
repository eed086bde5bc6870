package leasetable_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/event"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/memory"
	"github.com/sqllock/sqllock/leasetable/internal/store"
	"github.com/sqllock/sqllock/sqltest"
)

// onTrouble returns a channel that receives the errors after which acquisitions retry, and the option for it.
func onTrouble() (<-chan error, leasetable.Option) {
	met := make(chan error, 100)
	return met, leasetable.WithHook(func(_ context.Context, e sqllock.Event) {
		if e.Kind == event.Retrying {
			met <- e.Err
		}
	})
}

// mustGet waits for the lock of acquiring.
func mustGet(t *testing.T, got <-chan *leasetable.Lease) *leasetable.Lease {
	t.Helper()
	lock := receive(t, got)
	if lock == nil {
		t.Fatal("Acquire failed")
	}
	return lock
}

func serverRestartsUnderWaits(t *testing.T, server *sqltest.Server, db *sqltest.Database) {
	t.Helper()
	lease := take(t, newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), "busy")
	metBusy, told := onTrouble()
	busy := acquiring(newLocker(t, db.DB, told), "busy")
	eventually(t, func() bool { return wanted(t, db) })
	server.Kill()
	_ = receive(t, metBusy)
	metFree, told := onTrouble() // its server is down at first
	free := acquiring(newLocker(t, db.DB, told), "free")
	_ = receive(t, metFree)
	metLeader, told := onTrouble()
	leader := campaign(t, newElector(t, newLocker(t, db.DB, told)))
	_ = receive(t, metLeader)
	if len(busy)+len(free)+len(leader.ended) > 0 {
		t.Error("a wait or a campaign ended with the server")
	}
	server.Start()
	mustGet(t, free)
	leader.mustLead(t)
	release(t, lease)
	if token := mustGet(t, busy).Token(); token != lease.Token()+1 {
		t.Errorf("token %d after %d", token, lease.Token())
	}
}

func TestAWaitOutlastsADatabaseThatIsAwayAtFirst(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		met, told := onTrouble()
		l, network := breakably(t, db, told)
		if _, err := l.TryAcquire(t.Context(), "x"); !errors.Is(err, errAway) {
			t.Errorf("TryAcquire: %v", err)
		}
		first, second := acquiring(l, "x"), acquiring(l, "y")
		if err := receive(t, met); !errors.Is(err, errAway) {
			t.Errorf("it met %v", err)
		}
		eventually(t, func() bool { return len(network.inVain()) >= 12 })
		if len(met) > 0 {
			t.Error("each attempt is told")
		}
		network.set(false)
		release(t, mustGet(t, first), mustGet(t, second))
	})
}

func TestAWaitEndsWithARefusedCertificate(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	locktest.EndsWithARefusedCertificate(t, func(dsn string) (locktest.Locker, error) {
		l, err := leasetable.New(dsn, leasetable.WithLogger(nil))
		if err != nil {
			return nil, err
		}
		return ofAnyKind(l), nil
	})
}

func TestAWaitThatEndsInTroubleSaysWhatItWas(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		for _, opts := range [][]sqllock.Option{nil, {leasetable.WithShared()}} {
			met, told := onTrouble()
			l, network := breakably(t, db, told)
			ctx, cancel := context.WithCancelCause(t.Context())
			ended := make(chan error, 2)
			for range cap(ended) { // the second one waits in the queue behind the first
				go func() {
					_, err := l.Acquire(ctx, "x", opts...)
					ended <- err
				}()
			}
			_ = receive(t, met)
			eventually(t, func() bool { return leasetable.Waiting(l, "x") == 1 })
			cancel(errStop)
			for range cap(ended) {
				if err := receive(t, ended); !errors.Is(err, errStop) || !errors.Is(err, errAway) || errors.Is(err, sqllock.ErrHeld) || !sqllock.IsRetryable(err) {
					t.Errorf("Acquire: %v", err)
				}
			}
			network.set(false)
			take(t, l, "x", opts...)
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// A machine may be so slow for a while that every lease is over before the response to its claim arrives.
func TestAWaitOutlastsItsOwnLeases(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	const shortTTL, late = 3 * time.Second, 4 * time.Second
	for name, releases := range map[string][]lag{
		"that are released": {{}},
		"that are not":      {{lost: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				db, l := newLagging(t, leasetable.WithTTL(shortTTL))
				claims := make([]lag, 12)
				for i := range claims {
					claims[i].answer = late
				}
				db.delay(taking, append(claims, lag{})...)
				db.delay(releasing, releases...)
				_, err := l.TryAcquire(t.Context(), "x")
				if !sqllock.IsRetryable(err) || errors.Is(err, sqllock.ErrExpired) || errors.Is(err, sqllock.ErrLost) {
					t.Errorf("TryAcquire: %v", err)
				}
				lock, err := l.Acquire(t.Context(), "x")
				mustNotBeOver(t, lock, err)
				if err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Nobody waits any more when the database answers again, and the next outage is another one.
func TestAnOutageIsOverWhenATryIsAnswered(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{Store: memory.NewServer(memory.Postgres).Store()}
		told := 0
		l := keep(t, s, leasetable.WithHook(func(_ context.Context, e sqllock.Event) {
			if e.Kind == event.Retrying {
				told++
			}
		}))
		for range 2 {
			s.free = func(context.Context, *store.Request) (store.Result, error) {
				return store.Result{}, &dberr.Error{Err: sqllock.ErrReadOnly, Transient: true}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := l.Acquire(ctx, "x"); !errors.Is(err, sqllock.ErrReadOnly) {
				t.Errorf("Acquire of a server that is read-only: %v", err)
			}
			cancel()
			s.free = nil
			lock, err := l.TryAcquire(t.Context(), "x")
			if err != nil {
				t.Fatal(err)
			}
			release(t, lock)
			pass(10 * time.Second)
		}
		if told != 2 {
			t.Errorf("%d of two outages were told", told)
		}
	})
}

// The end of a wait cuts off the attempt under way: that says nothing about the database.
func TestAWaitThatEndsDuringAnAttemptSaysWhatTheTroubleWas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{Store: memory.NewServer(memory.Postgres).Store()}
		s.open = func(context.Context, store.LeaseRow, time.Duration) (time.Time, error) {
			return time.Time{}, &dberr.Error{Err: errCut, Transient: true}
		}
		s.read = func(ctx context.Context, _ string) (store.State, error) {
			<-ctx.Done()
			return store.State{}, dberr.Classify(ctx.Err())
		}
		l := keep(t, s)
		if _, err := l.Acquire(t.Context(), "x", sqllock.WithWait(time.Second)); !errors.Is(err, errCut) || errors.Is(err, dberr.ErrSlow) {
			t.Errorf("Acquire: %v", err)
		}
	})
}
