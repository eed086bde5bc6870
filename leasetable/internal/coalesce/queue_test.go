package coalesce_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/coalesce"
)

// stuck is a kind of statement that serves "stuck" only after it was closed.
type stuck chan struct{}

func (s stuck) One(_ context.Context, request string) (string, error) {
	if request == "stuck" {
		<-s
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
