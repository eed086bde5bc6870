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
	for _, request := range requests {
		result, _ := s.One(ctx, request) // never fails
		results = append(results, result)
	}
	return results, nil
}

func (stuck) Alike(string, string) bool { return true }

func TestAStatementThatTakesLongIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		block := make(stuck)
		kind := coalesce.Kind[string, string]{Statements: block, Within: time.Hour}
		_, queue := coalesce.New(func(f func()) error {
			go f()
			return nil
		}, kind, kind)
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
