package coalesce_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable/internal/coalesce"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
)

// stuck is a kind of statement that serves "stuck" only after it was closed, and whose driver ends the goroutine at "end".
type stuck chan struct{}

func (s stuck) One(_ context.Context, request string) (string, error) {
	switch request {
	case "stuck":
		<-s
	case "end":
		runtime.Goexit()
	}
	return request, nil
}

func (s stuck) Many(ctx context.Context, requests []string) (results []string, err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for _, request := range requests {
		result, _ := s.One(ctx, request) // never fails
		results = append(results, result)
	}
	return results, nil
}

func TestAStatementThatTakesLongIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		block := make(stuck)
		queue := newQueue(block, false)
		first := queue.Join(t.Context(), "stuck")
		synctest.Wait() // its statement is running
		<-queue.Join(t.Context(), "other").Done()
		close(block)
		<-first.Done()
		if got, err := first.Result(); got != "stuck" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}

func TestACallWhoseTimeIsUpFailsNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		block := make(stuck)
		queue := newQueue(block, true)
		first := queue.Join(t.Context(), "stuck")
		synctest.Wait() // its statement is running
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		late, other := queue.Join(ctx, "late"), queue.Join(t.Context(), "other")
		<-ctx.Done()
		close(block)
		<-first.Done()
		<-late.Done()
		<-other.Done()
		if got, err := other.Result(); got != "other" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// Its outcome is known: nobody has to find out what it did.
func TestACallWhoseTimeIsUpIsNotSent(t *testing.T) {
	t.Parallel()
	for name, alone := range map[string]bool{"alone": true, "with another one": false} {
		synctest.Test(t, func(t *testing.T) {
			block := make(stuck)
			queue := newQueue(block, true)
			first := queue.Join(t.Context(), "stuck")
			synctest.Wait() // its statement is running
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			late := queue.Join(ctx, "stuck") // would never end
			if !alone {
				queue.Join(ctx, "stuck")
			}
			<-ctx.Done()
			block <- struct{}{}
			<-first.Done()
			<-late.Done()
			if _, err := late.Result(); !errors.Is(err, dberr.ErrUnsent) || !dberr.OutcomeKnown(err) || !sqllock.IsRetryable(err) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// The statement panics, or ends its goroutine, in code of the user.
func TestAStatementThatDoesNotReturnHoldsUpNobody(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(){"panic": func() { panic("in a driver") }, "Goexit": runtime.Goexit} {
		queue := newQueue(nil, true)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			defer func() { _ = recover() }()
			queue.Inline(end)
		}()
		<-ended
		if !queue.Inline(func() {}) {
			t.Errorf("%s: the next statement has to wait for it", name)
		}
	}
}

// Another goroutine goes on. I19.
func TestAStatementWhoseGoroutineEndsIsAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		block := make(stuck)
		queue := newQueue(block, true)
		mustBeUnreturned := func(calls ...*coalesce.Call[string, string]) {
			for _, call := range calls {
				<-call.Done()
				if _, err := call.Result(); !errors.Is(err, dberr.ErrUnreturned) || dberr.OutcomeKnown(err) {
					t.Error(err)
				}
			}
		}
		mustBeUnreturned(queue.Join(t.Context(), "end"))
		first := queue.Join(t.Context(), "stuck")
		synctest.Wait() // its statement is running
		one, two := queue.Join(t.Context(), "end"), queue.Join(t.Context(), "two")
		close(block)
		<-first.Done()
		mustBeUnreturned(one, two)
		<-queue.Join(t.Context(), "next").Done()
		one, two = coalesce.NewCall[string, string](t.Context(), "end"), coalesce.NewCall[string, string](t.Context(), "two")
		go queue.Serve([]*coalesce.Call[string, string]{one, two})
		mustBeUnreturned(one, two)
	})
}

func newQueue(s stuck, serialized bool) *coalesce.Queue[string, string] {
	kind := coalesce.Kind[string, string]{One: s.One, Many: s.Many, Within: time.Hour}
	hand := func(f func()) error {
		go f()
		return nil
	}
	alike := func(string, string) bool { return true }
	_, queue := coalesce.New(hand, alike, serialized, kind, kind)
	return queue
}
