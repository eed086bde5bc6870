package sqllock_test

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/hold"
	"github.com/sqllock/sqllock/internal/option"
)

// slow is a Locker whose names each come free when somebody has waited for them for so long.
type slow time.Duration

func (s slow) TryAcquire(_ context.Context, name string, _ ...sqllock.Option) (sqllock.Lock, error) {
	return nil, &sqllock.HeldError{Name: name}
}

func (s slow) Acquire(ctx context.Context, name string, opts ...sqllock.Option) (sqllock.Lock, error) {
	o, _, _ := option.Read[struct{}](opts)
	if o.Wait != nil && *o.Wait < time.Duration(s) {
		<-time.After(*o.Wait)
		return nil, &sqllock.HeldError{Name: name}
	}
	<-time.After(time.Duration(s))
	return hold.New(ctx, name, freed{}).Lock(), nil
}

// freed is a lock whose release returns an error.
type freed struct{ err error }

func (f freed) Free(context.Context) error { return f.err }

func TestTheTimeToWaitIsForAllNamesTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		names := []string{"a", "b", "c", "d", "e"}
		for wait, enough := range map[time.Duration]bool{4 * time.Second: false, 5 * time.Second: true} {
			began := time.Now()
			all, err := sqllock.AcquireAll[sqllock.Lock](t.Context(), slow(time.Second), names, sqllock.WithWait(wait))
			if enough != (err == nil) || err != nil && !errors.Is(err, sqllock.ErrHeld) || time.Since(began) != wait {
				t.Errorf("within %v: %v after %v", wait, err, time.Since(began))
			}
			if err == nil {
				if err := all.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

func TestAFunctionThatIsNilAcquiresNothing(t *testing.T) {
	t.Parallel()
	var nobody sqllock.Locker // is not called
	_, tried := sqllock.TryDo(t.Context(), nobody, "x", nil)
	_, triedWith := sqllock.TryDoWith(t.Context(), nobody, "x", nil)
	for how, err := range map[string]error{
		"Do":        sqllock.Do(t.Context(), nobody, "x", nil),
		"DoWith":    sqllock.DoWith(t.Context(), nobody, "x", nil),
		"TryDo":     tried,
		"TryDoWith": triedWith,
	} {
		if err == nil {
			t.Errorf("%s: no error", how)
		}
	}
}

// A function that returns why its context ended says the same as the release.
func TestALossIsSaidOnce(t *testing.T) {
	t.Parallel()
	lost := errors.New("lost")
	err := sqllock.Do(t.Context(), losing{lost}, "x", func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	if !errors.Is(err, lost) || err.Error() != lost.Error() {
		t.Errorf("the error is %q", err)
	}
}

// losing is a Locker whose locks are lost at once.
type losing struct{ err error }

func (l losing) TryAcquire(ctx context.Context, name string, _ ...sqllock.Option) (sqllock.Lock, error) {
	h := hold.New(ctx, name, freed(l))
	h.End(l.err)
	return h.Lock(), nil
}

func (l losing) Acquire(ctx context.Context, name string, opts ...sqllock.Option) (sqllock.Lock, error) {
	return l.TryAcquire(ctx, name, opts...)
}

// hooked is a Locker of free names whose hook ends by end for each name but the first. It counts its locks that are held.
type hooked struct {
	end  func()
	held *atomic.Int64
}

func (h hooked) TryAcquire(ctx context.Context, name string, _ ...sqllock.Option) (sqllock.Lock, error) {
	return h.acquire(ctx, name, false)
}

func (h hooked) Acquire(ctx context.Context, name string, _ ...sqllock.Option) (sqllock.Lock, error) {
	return h.acquire(ctx, name, true)
}

func (h hooked) acquire(ctx context.Context, name string, patient bool) (sqllock.Lock, error) {
	if name != "a" {
		if !patient {
			return nil, &sqllock.HeldError{Name: name}
		}
		h.end()
	}
	h.held.Add(1)
	return hold.New(ctx, name, counted(h)).Lock(), nil
}

// counted is a lock of hooked.
type counted hooked

func (c counted) Free(context.Context) error {
	c.held.Add(-1)
	return nil
}

func TestAPanicLeavesNoneOfAllNamesHeld(t *testing.T) {
	t.Parallel()
	for how, end := range map[string]func(){"panic": func() { panic("by the user") }, "Goexit": runtime.Goexit} {
		l, ended := hooked{end, new(atomic.Int64)}, make(chan struct{})
		go func() {
			defer close(ended)
			defer func() { _ = recover() }()
			_, err := sqllock.AcquireAll[sqllock.Lock](t.Context(), l, []string{"a", "b"})
			t.Errorf("%s: AcquireAll returned %v", how, err)
		}()
		<-ended
		if n := l.held.Load(); n != 0 {
			t.Errorf("%s: %d names are held", how, n)
		}
	}
}

// leaving is a Locker whose tries end their goroutine, but for the name a.
type leaving struct{ held *atomic.Int64 }

func (l leaving) TryAcquire(ctx context.Context, name string, _ ...sqllock.Option) (sqllock.Lock, error) {
	if name != "a" {
		runtime.Goexit()
	}
	return l.Acquire(ctx, name)
}

func (l leaving) Acquire(ctx context.Context, name string, _ ...sqllock.Option) (sqllock.Lock, error) {
	return hooked{func() {}, l.held}.Acquire(ctx, name)
}

func TestATryThatDoesNotReturnIsNoLock(t *testing.T) {
	t.Parallel()
	l := leaving{new(atomic.Int64)}
	all, err := sqllock.AcquireAll[sqllock.Lock](t.Context(), l, []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	if err := all.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if n := l.held.Load(); n != 0 {
		t.Errorf("%d names are held", n)
	}
}

// asked is a lock that counts how often somebody asks for its context.
type asked struct {
	sqllock.Lock
	times *atomic.Int64
}

func (a asked) Context() context.Context {
	a.times.Add(1)
	return a.Lock.Context()
}

// many is a Locker that gives such locks, to those who wait.
type many struct {
	slow
	times *atomic.Int64
}

func (m many) Acquire(ctx context.Context, name string, _ ...sqllock.Option) (sqllock.Lock, error) {
	return asked{hold.New(ctx, name, freed{}).Lock(), m.times}, nil
}

func TestTheLocksOfManyNamesAreNotAskedAtEachName(t *testing.T) {
	t.Parallel()
	const names = 1000
	m := many{times: new(atomic.Int64)}
	var each []string
	for i := range names {
		each = append(each, strconv.Itoa(i))
	}
	all, err := sqllock.AcquireAll[sqllock.Lock](t.Context(), m, each)
	if err != nil {
		t.Fatal(err)
	}
	if n := m.times.Load(); n > 10*names {
		t.Errorf("%d questions for %d names", n, names)
	}
	if err := all.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
