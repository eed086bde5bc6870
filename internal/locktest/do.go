package locktest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
)

var errWork = errors.New("the work failed")

// doTests are about Do, DoWith, TryDo, TryDoWith and WithWait.
type doTests struct{ suite }

func (s doTests) tests() []test {
	return []test{
		{"Do holds the lock while its function runs", s.doHolds},
		{"Do returns what its function returns", s.doError},
		{"Do releases when its function panics", s.doPanic},
		{"Do cancels its function when the lock is lost", s.doLost},
		{"Do cancels its function with the cause of its context", s.doCancelled},
		{"Do does not run its function without the lock", s.doHeld},
		{"DoWith gives the function the lock", s.doWith},
		{"TryDo runs what is free, and says whether it did", s.tryDo},
		{"TryDoWith passes the lock on", s.tryDoWith},
		{"WithWait bounds the waiting alone", s.boundedWait},
	}
}

func (s doTests) doHolds(t *testing.T) {
	a, b := s.twoLockers(t)
	err := sqllock.Do(bounded(t), a, t.Name(), func(ctx context.Context) error {
		MustBeHeld(t, b, t.Name())
		return ctx.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	MustRelease(t, MustTry(t, b, t.Name()))
}

func (s doTests) doError(t *testing.T) {
	a, b := s.twoLockers(t)
	err := sqllock.Do(bounded(t), a, t.Name(), func(context.Context) error { return errWork })
	mustMatch(t, err, errWork)
	MustRelease(t, MustTry(t, b, t.Name()))
}

func (s doTests) doPanic(t *testing.T) {
	a, b := s.twoLockers(t)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is gone")
			}
		}()
		_ = sqllock.Do(bounded(t), a, t.Name(), func(context.Context) error { panic("at work") })
	}()
	MustRelease(t, MustTry(t, b, t.Name()))
}

func (s doTests) doLost(t *testing.T) {
	l := s.locker(t)
	err := sqllock.Do(bounded(t), l, t.Name(), func(ctx context.Context) error {
		s.lose(t, t.Name())
		receive(t, ctx.Done(), soon, "the end of the function's context")
		mustMatch(t, context.Cause(ctx), sqllock.ErrLost)
		return errWork
	})
	mustMatch(t, err, errWork, sqllock.ErrLost)

	// A function that ignores the loss must not make Do succeed either.
	err = sqllock.Do(bounded(t), l, t.Name(), func(ctx context.Context) error {
		s.lose(t, t.Name())
		receive(t, ctx.Done(), soon, "the end of the function's context")
		return nil
	})
	mustMatch(t, err, sqllock.ErrLost)
}

func (s doTests) doCancelled(t *testing.T) {
	a, b := s.twoLockers(t)
	ctx, cancel := context.WithCancelCause(bounded(t))
	err := sqllock.Do(ctx, a, t.Name(), func(ctx context.Context) error {
		cancel(errGone)
		mustMatch(t, context.Cause(ctx), errGone)
		MustBeHeld(t, b, t.Name()) // until the function has returned
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	MustRelease(t, MustTry(t, b, t.Name()))
}

func (s doTests) doHeld(t *testing.T) {
	a, b := s.twoLockers(t)
	lock := MustTry(t, a, t.Name())
	mustWaitInVain(t, func(ctx context.Context) error {
		return sqllock.Do(ctx, b, t.Name(), func(context.Context) error {
			t.Error("the function ran")
			return nil
		})
	})
	MustLive(t, lock)
	MustRelease(t, lock)
}

func (s doTests) doWith(t *testing.T) {
	a, b := s.twoLockers(t)
	err := sqllock.DoWith(bounded(t), a, t.Name(), func(ctx context.Context, lock sqllock.Lock) error {
		MustBeHeld(t, b, lock.Name())
		MustLive(t, lock)
		return ctx.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	MustRelease(t, MustTry(t, b, t.Name()))
}

func (s doTests) tryDo(t *testing.T) {
	a, b := s.twoLockers(t)
	ran, err := sqllock.TryDo(bounded(t), a, t.Name(), func(ctx context.Context) error {
		again, err := sqllock.TryDo(ctx, b, t.Name(), func(context.Context) error { return errGone })
		if again || err != nil {
			t.Errorf("of a lock that is held TryDo = %t, %v", again, err)
		}
		return errWork
	})
	if !ran {
		t.Error("TryDo has not run, it says")
	}
	mustMatch(t, err, errWork)
	MustRelease(t, MustTry(t, b, t.Name()))

	ran, err = sqllock.TryDo(bounded(t), a, "", func(context.Context) error { return errWork })
	if ran {
		t.Error("TryDo has run without a lock, it says")
	}
	mustMatch(t, err, sqllock.ErrName)
}

func (s doTests) tryDoWith(t *testing.T) {
	a, b := s.twoLockers(t)
	ran, err := sqllock.TryDoWith(bounded(t), a, t.Name(), func(ctx context.Context, lock sqllock.Lock) error {
		MustBeHeld(t, b, lock.Name())
		MustLive(t, lock)
		again, err := sqllock.TryDoWith(ctx, b, t.Name(), func(context.Context, sqllock.Lock) error { return errGone })
		if again || err != nil {
			t.Errorf("of a lock that is held TryDoWith = %t, %v", again, err)
		}
		return errWork
	})
	if !ran {
		t.Error("TryDoWith has not run, it says")
	}
	mustMatch(t, err, errWork)
	MustRelease(t, MustTry(t, b, t.Name()))
}

func (s doTests) boundedWait(t *testing.T) {
	a, b := s.twoLockers(t)
	err := sqllock.Do(bounded(t), a, t.Name(), func(ctx context.Context) error { return ctx.Err() }, sqllock.WithWait(time.Millisecond))
	if err != nil {
		t.Errorf("a lock that is free: %v", err)
	}
	lock := MustTry(t, a, t.Name())
	for _, wait := range []time.Duration{0, 100 * time.Millisecond} {
		_, err := b.Acquire(bounded(t), t.Name(), sqllock.WithWait(wait))
		mustMatch(t, err, sqllock.ErrHeld)
		if !sqllock.IsRetryable(err) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after a wait of %v: %v; want an error that may be retried, and is not the caller's deadline", wait, err)
		}
	}
	waiting := make(chan error, 1)
	go func() {
		waiting <- sqllock.Do(context.WithoutCancel(t.Context()), b, t.Name(), func(ctx context.Context) error {
			_, bounds := ctx.Deadline()
			if bounds {
				t.Error("the work is bounded, too")
			}
			return errWork
		}, sqllock.WithWait(soon))
	}()
	MustLive(t, lock)
	MustRelease(t, lock)
	mustMatch(t, receive(t, waiting, soon, "the end of the work"), errWork)

	_, err = b.Acquire(bounded(t), t.Name(), sqllock.WithWait(-time.Second))
	if err == nil || errors.Is(err, sqllock.ErrHeld) {
		t.Errorf("with a negative wait: %v", err)
	}
	mustBecomeFree(t, a, t.Name()) // the server may still grant the lock to the wait that has ended
}
