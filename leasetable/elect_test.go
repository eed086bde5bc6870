package leasetable_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/event"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/internal/option"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/schema"
	"github.com/sqllock/sqllock/sqltest"
)

var (
	errLead = errors.New("leading failed")
	errStop = errors.New("the process stops")
	errAway = errors.New("the network is away")
)

// bounded returns a context for operations that must succeed.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// receive waits for a value, or for the closing of ch.
func receive[T any](t *testing.T, ch <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-ch:
	case <-bounded(t).Done():
		t.Fatal("waited a minute for what did not happen")
	}
	return v
}

func newElector(t *testing.T, l *leasetable.Locker) *leasetable.Elector {
	t.Helper()
	e, err := leasetable.NewElector(l, "x")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// onRenewal returns a channel that receives a value at each renewal, and the option for it.
func onRenewal() (<-chan struct{}, leasetable.Option) {
	renewed := make(chan struct{})
	return renewed, leasetable.WithHook(func(_ context.Context, e sqllock.Event) {
		if e.Kind != event.Renewed || e.Locks == 0 {
			return
		}
		select {
		case renewed <- struct{}{}:
		default:
		}
	})
}

// leadership is one call of the function that leads; the test controls it.
type leadership struct {
	ctx   context.Context
	lease *leasetable.Lease
	end   chan error // the result of the function
}

// candidate is a Run in another goroutine.
type candidate struct {
	leads  chan leadership
	ended  chan error
	cancel context.CancelCauseFunc
}

// campaign starts a candidate. It ends with the test.
func campaign(t *testing.T, e *leasetable.Elector) candidate {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	c := candidate{make(chan leadership), make(chan error, 1), cancel}
	var done sync.WaitGroup
	over := t.Context().Done()
	done.Go(func() {
		c.ended <- e.Run(ctx, func(ctx context.Context, lease *leasetable.Lease) error {
			l := leadership{ctx, lease, make(chan error)}
			select {
			case c.leads <- l:
			case <-over:
			}
			select {
			case err := <-l.end:
				return err
			case <-over:
				return errStop
			}
		})
	})
	t.Cleanup(done.Wait)
	return c
}

// mustLead waits until the candidate leads.
func (c candidate) mustLead(t *testing.T) leadership {
	t.Helper()
	select {
	case l := <-c.leads:
		return l
	case err := <-c.ended:
		t.Fatalf("the candidate does not campaign any more: %v", err)
	case <-bounded(t).Done():
		t.Fatal("nobody led within 30 s")
	}
	return leadership{}
}

// mustNotLead checks that the candidate keeps waiting.
func (c candidate) mustNotLead(t *testing.T) {
	t.Helper()
	select {
	case <-c.leads:
		t.Fatal("there are two leaders")
	case err := <-c.ended:
		t.Fatalf("the candidate does not campaign any more: %v", err)
	default:
	}
}

// renewUntilLost renews a lock that is lost until its holder knows.
func renewUntilLost(t *testing.T, lease *leasetable.Lease) {
	t.Helper()
	eventually(t, func() bool { return errors.Is(lease.Renew(t.Context()), sqllock.ErrLost) })
}

// mustEnd waits for the end of a leadership, and checks why.
func (l leadership) mustEnd(t *testing.T, cause error) {
	t.Helper()
	receive(t, l.ctx.Done())
	if err := context.Cause(l.ctx); !errors.Is(err, cause) {
		t.Fatalf("the leader's context ended with %v; want %v", err, cause)
	}
}

func TestOneLeadsAtATime(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		lockers := []*leasetable.Locker{newLocker(t, db.DB), newLocker(t, db.DB), newLocker(t, db.DB)}
		ctx := bounded(t)
		const candidates, terms = 6, 4
		var leaders atomic.Int32
		var mu sync.Mutex
		var tokens []int64
		var all sync.WaitGroup
		for i := range candidates {
			e := newElector(t, lockers[i%len(lockers)])
			all.Go(func() {
				for range terms {
					err := e.Run(ctx, func(ctx context.Context, lease *leasetable.Lease) error {
						if leaders.Add(1) != 1 {
							t.Error("there are two leaders")
						}
						defer leaders.Add(-1)
						mu.Lock()
						tokens = append(tokens, lease.Token())
						mu.Unlock()
						leader, led, err := e.Leader(ctx)
						if err == nil && (!led || leader.Token != lease.Token()) {
							t.Errorf("the leader of %d is told as %v, %t", lease.Token(), leader, led)
						}
						return err
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if len(tokens) != candidates*terms || !slices.IsSorted(tokens) || len(slices.Compact(tokens)) != candidates*terms {
			t.Errorf("the tokens of %d terms are %v", candidates*terms, tokens)
		}
	})
}

func TestAKilledLeaderIsFollowed(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		h := startHolder(t, db)
		token := h.mustHold(t)
		c := campaign(t, newElector(t, newLocker(t, db.DB)))
		h.signal(t, syscall.SIGKILL)
		h.expire(t, db)
		if next := c.mustLead(t).lease.Token(); next != token+1 {
			t.Errorf("the next leader has token %d, after %d", next, token)
		}
	})
}

func TestALeaderThatIsDeposedCampaignsAgainWhenItsWorkHasReturned(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l, admin := newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), newLocker(t, db.DB)
		c := campaign(t, newElector(t, l))
		first := c.mustLead(t)
		if was, err := admin.ForceRelease(t.Context(), "x"); err != nil || !was.Held {
			t.Fatal(was, err)
		}
		renewUntilLost(t, first.lease)
		first.mustEnd(t, sqllock.ErrLost)
		for range 2 {
			<-time.After(time.Second)
			c.mustNotLead(t)
		}
		if _, led, err := newElector(t, admin).Leader(t.Context()); led || err != nil {
			t.Errorf("while the work of a deposed leader goes on, somebody leads: %t, %v", led, err)
		}
		first.end <- errLead
		second := c.mustLead(t)
		if second.lease.Token() <= first.lease.Token() {
			t.Errorf("token %d after %d", second.lease.Token(), first.lease.Token())
		}
		second.end <- nil
		if err := receive(t, c.ended); err != nil {
			t.Errorf("Run: %v; what a deposed leader returned is no matter", err)
		}
	})
}

func TestALeaderThatIsCancelledLeadsUntilItsWorkHasReturned(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		renewed, hook := onRenewal()
		a := campaign(t, newElector(t, newLocker(t, db.DB, leasetable.WithTTL(survivingTTL), hook)))
		first := a.mustLead(t)
		b := campaign(t, newElector(t, newLocker(t, db.DB, leasetable.WithTTL(time.Hour))))
		a.cancel(errStop)
		first.mustEnd(t, errStop)
		for range 2 { // of three in a TTL
			receive(t, renewed)
			b.mustNotLead(t)
		}
		mustVerify(t, first.lease)
		first.end <- errLead
		second := b.mustLead(t) // it resigned: nothing had to expire
		if err := receive(t, a.ended); !errors.Is(err, errLead) || errors.Is(err, sqllock.ErrLost) {
			t.Errorf("Run of the cancelled leader: %v", err)
		}
		if second.lease.Token() != first.lease.Token()+1 {
			t.Errorf("token %d after %d", second.lease.Token(), first.lease.Token())
		}

		// Deposed while its work is about to return: Run reports that, and ends.
		b.cancel(errStop)
		second.mustEnd(t, errStop)
		expireLease(t, db, "x")
		renewUntilLost(t, second.lease)
		second.end <- nil
		if err := receive(t, b.ended); !errors.Is(err, sqllock.ErrLost) || errors.Is(err, errStop) {
			t.Errorf("Run of a leader that was cancelled and deposed: %v", err)
		}
	})
}

func TestALeaderThatReturnsResigns(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		e := newElector(t, newLocker(t, db.DB, leasetable.WithTTL(time.Hour)))
		next := newLocker(t, db.DB)
		mustBeFree := func() {
			t.Helper()
			lock := locktest.MustTry(t, next, "x")
			if err := lock.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, want := range []error{nil, errLead} {
			if err := e.Run(bounded(t), func(context.Context, *leasetable.Lease) error { return want }); !errors.Is(err, want) {
				t.Errorf("Run of a leader that returned %v: %v", want, err)
			}
			mustBeFree()
		}
		func() {
			defer func() {
				if recover() != errLead { //nolint:errorlint // the value of the panic
					t.Error("the panic is gone")
				}
			}()
			_ = e.Run(bounded(t), func(context.Context, *leasetable.Lease) error { panic(errLead) })
		}()
		mustBeFree()
		// A leader that was deposed without noticing must not make Run succeed.
		err := e.Run(bounded(t), func(context.Context, *leasetable.Lease) error {
			expireLease(t, db, "x")
			take(t, next, "x")
			return nil
		})
		if !errors.Is(err, sqllock.ErrLost) {
			t.Errorf("Run of a leader that was not the last to lead: %v", err)
		}
	})
}

func TestACampaignEndsWithItsContextOrItsLocker(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		leading, waiting := newLocker(t, db.DB), newLocker(t, db.DB)
		leader := campaign(t, newElector(t, leading))
		first := leader.mustLead(t)
		c := campaign(t, newElector(t, waiting))
		c.cancel(errStop)
		if err := receive(t, c.ended); !errors.Is(err, errStop) {
			t.Errorf("Run of a cancelled candidate: %v", err)
		}
		c = campaign(t, newElector(t, waiting))
		c.mustNotLead(t)
		if err := waiting.Close(); err != nil {
			t.Fatal(err)
		}
		if err := receive(t, c.ended); !errors.Is(err, sqllock.ErrClosed) {
			t.Errorf("Run of a candidate whose Locker was closed: %v", err)
		}
		if err := leading.Close(); err != nil {
			t.Fatal(err)
		}
		first.mustEnd(t, sqllock.ErrClosed)
		first.end <- nil
		if err := receive(t, leader.ended); !errors.Is(err, sqllock.ErrClosed) {
			t.Errorf("Run of a leader whose Locker was closed: %v", err)
		}
	})
}

func TestWhatWillNotPassEndsACampaign(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		e := newElector(t, newLocker(t, db.DB, leasetable.WithTables(schema.Tables{Prefix: "missing_"})))
		err := e.Run(bounded(t), func(context.Context, *leasetable.Lease) error { return nil })
		if !errors.Is(err, sqllock.ErrSchema) {
			t.Errorf("Run without tables: %v", err)
		}
		var told []error
		for _, err := range e.Observe(bounded(t), time.Millisecond) {
			told = append(told, err)
		}
		if len(told) != 1 || !errors.Is(told[0], sqllock.ErrSchema) {
			t.Errorf("Observe without tables: %v", told)
		}
	})
}

func TestAnElectorRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	l := newLocker(t, withTables(t, sqltest.SQLite(t)).DB)
	if _, err := leasetable.NewElector(nil, "x"); err == nil {
		t.Error("an Elector without a Locker")
	}
	if _, err := leasetable.NewElector(l, "x", leasetable.WithGiveUpEarly()); !errors.Is(err, sqllock.ErrUnsupported) || !strings.Contains(err.Error(), "WithGiveUpEarly") {
		t.Error(err)
	}
	if _, err := leasetable.NewElector(l, "x", sqllock.WithWait(time.Second)); !errors.Is(err, sqllock.ErrUnsupported) || !strings.Contains(err.Error(), "WithWait") {
		t.Errorf("NewElector with a time to wait: %v", err)
	}
	if _, err := leasetable.NewElector(l, ""); !errors.Is(err, sqllock.ErrName) {
		t.Errorf("an Elector without a name: %v", err)
	}
	for _, ttl := range []time.Duration{-time.Second, time.Millisecond} {
		if _, err := leasetable.NewElector(l, "x", sqllock.WithTTL(ttl)); err == nil {
			t.Errorf("an Elector with a TTL of %v", ttl)
		}
	}
	strange := sqllock.Option(option.Of("another.Option", func(*int) {}))
	if _, err := leasetable.NewElector(l, "x", strange); !errors.Is(err, sqllock.ErrUnsupported) || !strings.Contains(err.Error(), "another.Option") {
		t.Errorf("an Elector with another backend's option: %v", err)
	}
	e := newElector(t, l)
	if err := e.Run(t.Context(), nil); err == nil {
		t.Error("nothing leads")
	}
	for _, every := range []time.Duration{0, -time.Second} {
		var told []error
		for _, err := range e.Observe(bounded(t), every) {
			told = append(told, err)
		}
		if len(told) != 1 || told[0] == nil {
			t.Errorf("an observer that looks every %v is told %v", every, told)
		}
	}
}

func TestALeaderThatDiedLeadsForTheTTLOfItsElector(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		e, err := leasetable.NewElector(newLocker(t, db.DB), "x", sqllock.WithTTL(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		campaign(t, e).mustLead(t)
		leader, _, err := e.Leader(t.Context())
		if left := time.Until(leader.Until); err != nil || left < 59*time.Minute {
			t.Errorf("a TTL of an hour has %v left, %v", left, err)
		}
	})
}
