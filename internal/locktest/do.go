package locktest

import (
	"context"
	"errors"
	"testing"

	"github.com/sqllock/sqllock"
)

var errWork = errors.New("the work failed")

func (s suite) doHolds(t *testing.T) {
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

func (s suite) doError(t *testing.T) {
	a, b := s.twoLockers(t)
	err := sqllock.Do(bounded(t), a, t.Name(), func(context.Context) error { return errWork })
	mustMatch(t, err, errWork)
	MustRelease(t, MustTry(t, b, t.Name()))
}

func (s suite) doPanic(t *testing.T) {
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

func (s suite) doLost(t *testing.T) {
	l := s.locker(t)
	err := sqllock.Do(bounded(t), l, t.Name(), func(ctx context.Context) error {
		s.lose(t, t.Name())
		receive(t, ctx.Done(), soon, "the end of the function's context")
		mustMatch(t, context.Cause(ctx), sqllock.ErrLost)
		return errWork
	})
	mustMatch(t, err, errWork, sqllock.ErrLost)

	// Also a function that does not notice must not look as if all were well.
	err = sqllock.Do(bounded(t), l, t.Name(), func(ctx context.Context) error {
		s.lose(t, t.Name())
		receive(t, ctx.Done(), soon, "the end of the function's context")
		return nil
	})
	mustMatch(t, err, sqllock.ErrLost)
}

func (s suite) doCancelled(t *testing.T) {
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

func (s suite) doHeld(t *testing.T) {
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
