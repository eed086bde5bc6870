package waitqueue_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/sqllock/sqllock/internal/waitqueue"
)

var errGone = errors.New("gone")

func TestATurnIsTakenOnce(t *testing.T) {
	t.Parallel()
	var q waitqueue.Queue[string, int, string]
	if !q.Try("a") || q.Try("a") {
		t.Fatal("of two tries not the first alone succeeded")
	}
	if !q.Try("b") {
		t.Fatal("another key is taken")
	}
	q.Done("a")
	if !q.Try("a") {
		t.Fatal("the turn was given back, and is taken")
	}
}

func TestTheFirstInLineLeavesAWordForItsPredecessor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var q waitqueue.Queue[string, int, string]
		q.Try("a")
		if word, came := q.Next("a"); word != "" || !came.IsZero() || q.Alike("a") != 0 {
			t.Errorf("nobody says %q", word)
		}
		for _, word := range []string{"first", "first", "second"} {
			go func() {
				if _, err := q.WaitWith(t.Context(), "a", word); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait() // it is in the queue
		}
		for i, want := range []string{"first", "first", "second", ""} {
			if word, _ := q.Next("a"); word != want || q.Alike("a") != []int{2, 1, 1, 0}[i] {
				t.Errorf("the first in line says %q, as do %d; want %q", word, q.Alike("a"), want)
			}
			if n := q.Others("a", "second"); n != []int{2, 1, 0, 0}[i] {
				t.Errorf("%d say something else than %q", n, "second")
			}
			q.Done("a")
			synctest.Wait()
		}
	})
}

func TestThoseWhoWaitAreServedInTheOrderTheyCame(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var q waitqueue.Queue[string, int, string]
		q.Try("a")
		served := make(chan int, 10)
		for i := range cap(served) {
			go func() {
				if _, err := q.Wait(t.Context(), "a"); err != nil {
					t.Error(err)
				}
				served <- i
			}()
			synctest.Wait() // it is in the queue
		}
		for i := range cap(served) {
			q.Done("a")
			synctest.Wait()
			if len(served) != 1 {
				t.Fatalf("%d were served by one Done", len(served))
			}
			if got := <-served; got != i {
				t.Fatalf("waiter %d was served as number %d", got, i)
			}
			if q.Try("a") {
				t.Fatal("a newcomer overtook those who wait")
			}
		}
		q.Done("a")
		if !q.Try("a") {
			t.Fatal("the turn is taken though nobody has it")
		}
	})
}

func TestAWaitEndsWithTheCauseOfItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var q waitqueue.Queue[string, int, string]
		q.Try("a")
		ctx, cancel := context.WithCancelCause(t.Context())
		first, second := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := q.Wait(ctx, "a")
			first <- err
		}()
		synctest.Wait()
		go func() {
			_, err := q.Wait(t.Context(), "a")
			second <- err
		}()
		synctest.Wait()

		cancel(errGone)
		if err := <-first; !errors.Is(err, errGone) {
			t.Fatalf("Wait = %v", err)
		}
		q.Done("a")
		if err := <-second; err != nil {
			t.Fatal(err)
		}
	})
}

func TestAFreeTurnIsTakenWithADeadContext(t *testing.T) {
	t.Parallel()
	var q waitqueue.Queue[string, int, string]
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := q.Wait(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Wait(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Fatalf("Wait for a taken turn = %v", err)
	}
}

// A turn that is handed to somebody who has just left goes on to the next. I2.
func TestATurnIsNotLostWhenTheHandoverMeetsACancellation(t *testing.T) {
	t.Parallel()
	for range 2000 {
		var q waitqueue.Queue[string, int, string]
		q.Try("a")
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() {
			_, err := q.Wait(ctx, "a")
			result <- err
		}()
		var race sync.WaitGroup
		race.Go(cancel)
		race.Go(func() { q.Done("a") })
		race.Wait()
		if err := <-result; err == nil {
			if q.Try("a") {
				t.Fatal("two have the turn")
			}
			q.Done("a")
		}
		if !q.Try("a") {
			t.Fatal("the turn is lost")
		}
	}
}

// I2.
func TestNeverTwoHaveTheTurn(t *testing.T) {
	t.Parallel()
	var (
		q      waitqueue.Queue[int, int, string]
		all    sync.WaitGroup
		counts [3]int // guarded by the turn of each index
	)
	const goroutines, rounds = 8, 500
	for range goroutines {
		all.Go(func() {
			for i := range rounds {
				key := i % len(counts)
				if _, err := q.Wait(t.Context(), key); err != nil {
					t.Error(err)
					return
				}
				counts[key]++
				q.Done(key)
			}
		})
	}
	all.Wait()
	if got := counts[0] + counts[1] + counts[2]; got != goroutines*rounds {
		t.Errorf("%d turns were counted, of %d", got, goroutines*rounds)
	}
}
