// Package waitqueue queues the goroutines of one process for a key: one at a time is at the head of the queue, the
// others wait, first come first served. So a database sees one contender per process and key, and a session, which
// could re-enter its lock on the server, never gets the chance to. The head can hand something over to the next waiter.
package waitqueue

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Queue has one wait queue per key. Its head can hand a V to the next waiter, and each waiter has an M for the head. The zero
// value is ready for use.
type Queue[K comparable, V any, M comparable] struct {
	mu sync.Mutex
	// waiting has an entry for every key whose queue has a head, with the waiters behind it, in the order they came.
	// Guarded by mu.
	waiting map[K][]waiter[V, M]
}

// waiter is a goroutine that waits to be at the head of a queue.
type waiter[V any, M comparable] struct {
	turn chan V    // gets the V when the waiter comes to the head; has room for one
	word M         // a message for the head, see Next and Others
	came time.Time // when it entered the queue
}

// Try enters the queue of key if it is empty, and reports whether it did (I2). The caller is then at its head.
func (q *Queue[K, V, M]) Try(key K) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.try(key)
}

func (q *Queue[K, V, M]) try(key K) bool {
	if _, taken := q.waiting[key]; taken {
		return false
	}
	if q.waiting == nil {
		q.waiting = make(map[K][]waiter[V, M])
	}
	q.waiting[key] = nil
	return true
}

// Wait enters the queue of key and waits until the caller is at its head. It returns what the head before it handed
// over: the zero V if the queue was empty. When ctx ends first, Wait leaves the queue and returns context.Cause(ctx).
func (q *Queue[K, V, M]) Wait(ctx context.Context, key K) (v V, err error) {
	var nothing M
	return q.WaitWith(ctx, key, nothing)
}

// WaitWith is Wait with a message for the head of the queue; see Next (I2).
func (q *Queue[K, V, M]) WaitWith(ctx context.Context, key K, word M) (v V, err error) {
	q.mu.Lock()
	if q.try(key) {
		q.mu.Unlock()
		return v, nil
	}
	mine := make(chan V, 1)
	q.waiting[key] = append(q.waiting[key], waiter[V, M]{mine, word, time.Now()})
	q.mu.Unlock()

	select {
	case v = <-mine:
		return v, nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	i := slices.IndexFunc(q.waiting[key], func(w waiter[V, M]) bool { return w.turn == mine })
	if i >= 0 {
		q.waiting[key] = slices.Delete(q.waiting[key], i, i+1)
	}
	q.mu.Unlock()
	if i < 0 { // the handoff came as ctx ended
		return <-mine, nil
	}
	return v, context.Cause(ctx)
}

// Waiting returns the number of waiters behind the head of the queue of key.
func (q *Queue[K, V, M]) Waiting(key K) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting[key])
}

// Others returns how many waiters behind the head of the queue of key have a message other than word.
func (q *Queue[K, V, M]) Others(key K, word M) (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range q.waiting[key] {
		if w.word != word {
			n++
		}
	}
	return n
}

// Next returns the message of the first waiter of key, and when it came; both are zero if nobody waits.
func (q *Queue[K, V, M]) Next(key K) (word M, came time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if line := q.waiting[key]; len(line) > 0 {
		return line[0].word, line[0].came
	}
	return word, came
}

// Alike returns how many waiters of key, from the first on, have the message of the first.
func (q *Queue[K, V, M]) Alike(key K) (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	line := q.waiting[key]
	for n < len(line) && line[n].word == line[0].word {
		n++
	}
	return n
}

// Pass leaves the queue of key and hands v to the first waiter, which is then at the head (I2). If nobody waits, it
// returns false, and the caller stays at the head.
func (q *Queue[K, V, M]) Pass(key K, v V) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.pass(key, v)
}

func (q *Queue[K, V, M]) pass(key K, v V) bool {
	line := q.waiting[key]
	if len(line) == 0 {
		return false
	}
	line[0].turn <- v
	q.waiting[key] = line[1:]
	return true
}

// Done leaves the queue of key (I2). The first waiter, if there is one, is then at the head, and gets the zero V.
func (q *Queue[K, V, M]) Done(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var nothing V
	if !q.pass(key, nothing) {
		delete(q.waiting, key)
	}
}
