package waitqueue_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/internal/waitqueue"
)

var errFailed = errors.New("it failed")

func TestThoseWhoWaitedForATryThatFailedHaveItsError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var q waitqueue.Tries[string]
		if err := q.Wait(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if err := q.Wait(t.Context(), "a"); !errors.Is(err, errFailed) {
					t.Error(err)
				}
			})
		}
		<-time.After(time.Second)
		q.Done("a", errFailed)
		all.Wait()
		<-time.After(time.Second)
		if err := q.Wait(t.Context(), "a"); err != nil { // it came later
			t.Error(err)
		}
		q.Done("a", nil)
	})
}

func TestATryThatDidNotFailIsFollowedByTheNextOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var q waitqueue.Tries[string]
		if err := q.Wait(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		got := make([]error, 2)
		var all sync.WaitGroup
		for i, ctx := range []context.Context{ctx, t.Context()} {
			all.Go(func() { got[i] = q.Wait(ctx, "a") })
			synctest.Wait() // it is in the queue
		}
		leave()
		<-time.After(time.Second)
		q.Done("a", nil)
		all.Wait()
		if !errors.Is(got[0], context.Canceled) || got[1] != nil {
			t.Errorf("the waiters had %v", got)
		}
	})
}
