package locktest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
)

// cancelTests are about contexts that end before the caller has the lock.
type cancelTests struct{ suite }

func (s cancelTests) tests() []test {
	return []test{
		{"a dead context acquires nothing", s.deadContext},
		{"a wait ends with its context and holds nothing", s.cancelledWait},
		{"a wait in line behind its own process ends with its context", s.cancelledInLine},
		{"a wait ends at its deadline", s.waitDeadline},
	}
}

func (s cancelTests) deadContext(t *testing.T) {
	a, b := s.twoLockers(t)
	for _, acquire := range []func(context.Context, string, ...sqllock.Option) (sqllock.Lock, error){a.TryAcquire, a.Acquire} {
		lock, err := acquire(deadContext(t), t.Name())
		if lock != nil {
			t.Fatal("there is a lock")
		}
		mustMatch(t, err, errGone)
		MustRelease(t, MustTry(t, b, t.Name()))
		MustRelease(t, MustTry(t, a, t.Name()))
	}
}

func (s cancelTests) cancelledWait(t *testing.T) {
	a, b := s.twoLockers(t)
	lock := MustTry(t, a, t.Name())
	MustBeHeld(t, b, t.Name())
	for range 3 {
		ctx, cancel := context.WithCancelCause(t.Context())
		w := startWaiter(ctx, b, t.Name())
		w.mustBlock(t)
		cancel(errGone)
		out := w.result(t)
		if out.lock != nil {
			t.Fatal("there is a lock")
		}
		mustMatch(t, out.err, errGone)
	}
	MustLive(t, lock)
	MustRelease(t, lock)
	mustBecomeFree(t, s.locker(t), t.Name())
	mustBecomeFree(t, b, t.Name())
}

func (s cancelTests) cancelledInLine(t *testing.T) {
	l := s.locker(t)
	lock := MustTry(t, l, t.Name())
	ctx, cancel := context.WithCancelCause(t.Context())
	first := startWaiter(ctx, l, t.Name())
	first.mustBlock(t)
	second := startWaiter(bounded(t), l, t.Name())
	second.mustBlock(t)
	cancel(errGone)
	mustMatch(t, first.result(t).err, errGone, sqllock.ErrHeld)

	MustLive(t, lock)
	MustRelease(t, lock)
	MustRelease(t, second.mustGet(t))
}

func (s cancelTests) waitDeadline(t *testing.T) {
	a, b := s.twoLockers(t)
	lock := MustTry(t, a, t.Name())
	mustWaitInVain(t, func(ctx context.Context) error {
		w := startWaiter(ctx, b, t.Name())
		<-ctx.Done()
		return w.result(t).err
	})
	MustRelease(t, lock)
	mustBecomeFree(t, s.locker(t), t.Name())
}

// cancelledAtTheGrant makes a release and a cancellation race, in every order. I19.
func (s cancelTests) cancelledAtTheGrant(t *testing.T) {
	a, b := s.twoLockers(t)
	c := s.locker(t)
	granted := 0
	const rounds = 60
	for round := range rounds {
		lock := MustAcquire(t, a, t.Name())
		ctx, cancel := context.WithCancelCause(t.Context())
		t.Cleanup(func() { cancel(nil) })
		w := startWaiter(ctx, b, t.Name())
		w.mustBlock(t)
		if s.opts.Waiting != nil {
			Eventually(t, "somebody waits", func() bool { return s.opts.Waiting(t, t.Name()) > 0 })
		}
		var both sync.WaitGroup
		switch round % 6 {
		case 0:
			both.Go(func() { cancel(errGone) })
			both.Go(func() { _ = lock.Release(ctx) })
		case 1:
			cancel(errGone)
			_ = lock.Release(ctx)
		case 2:
			_ = lock.Release(ctx)
			cancel(errGone)
		default: // at some time from before the grant until after its response
			both.Go(func() { _ = lock.Release(ctx) })
			<-lock.Context().Done()
			time.AfterFunc(time.Duration(round*round)*time.Microsecond, func() { cancel(errGone) })
		}
		both.Wait()
		mustBeOver(t, lock, sqllock.ErrReleased)
		if err := lock.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if out := w.result(t); out.err == nil {
			granted++
			MustLive(t, out.lock)
			MustBeHeld(t, c, t.Name())
			MustRelease(t, out.lock)
		} else {
			mustMatch(t, out.err, errGone)
		}
		mustBecomeFree(t, c, t.Name())
	}
	t.Logf("%d of %d waits were granted", granted, rounds)
}
