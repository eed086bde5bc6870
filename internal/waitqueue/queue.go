// Package waitqueue lets the goroutines of one process take turns: for every key one at a time,
// first come first served. A database sees one contender per process and key, and a session
// that would re-enter on the server never gets the chance to. With the turn goes what its last
// owner has to hand over.
package waitqueue

import (
	"context"
	"slices"
	"sync"
)

// Queue hands out turns, and with them a V. The zero value is ready for use.
type Queue[K comparable, V any] struct {
	mu sync.Mutex
	// waiting has an entry for every key whose turn is taken, with those who wait for it in
	// the order they came. Guarded by mu.
	waiting map[K][]waiter[V]
}

// waiter is one who waits for a turn.
type waiter[V any] struct {
	turn chan V // has room for one
	word string // what it wants its predecessor to know
}

// Try takes the turn of key if nobody has it.
func (q *Queue[K, V]) Try(key K) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.try(key)
}

func (q *Queue[K, V]) try(key K) bool {
	if _, taken := q.waiting[key]; taken {
		return false
	}
	if q.waiting == nil {
		q.waiting = make(map[K][]waiter[V])
	}
	q.waiting[key] = nil
	return true
}

// Wait waits for the turn of key, and returns what came with it; that is the zero V when the
// turn was free. When ctx ends first it returns context.Cause(ctx), and the turn is not taken.
func (q *Queue[K, V]) Wait(ctx context.Context, key K) (v V, err error) {
	return q.WaitWith(ctx, key, "")
}

// WaitWith is Wait, and leaves a word for who has the turn before; see Next.
func (q *Queue[K, V]) WaitWith(ctx context.Context, key K, word string) (v V, err error) {
	q.mu.Lock()
	if q.try(key) {
		q.mu.Unlock()
		return v, nil
	}
	mine := make(chan V, 1)
	q.waiting[key] = append(q.waiting[key], waiter[V]{mine, word})
	q.mu.Unlock()

	select {
	case v = <-mine:
		return v, nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	i := slices.IndexFunc(q.waiting[key], func(w waiter[V]) bool { return w.turn == mine })
	if i >= 0 {
		q.waiting[key] = slices.Delete(q.waiting[key], i, i+1)
	}
	q.mu.Unlock()
	if i < 0 { // it came as ctx ended
		return <-mine, nil
	}
	return v, context.Cause(ctx)
}

// Waiting returns how many wait for the turn of key.
func (q *Queue[K, V]) Waiting(key K) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting[key])
}

// Next returns the word of whoever has waited longest for the turn of key; it is empty if nobody waits.
func (q *Queue[K, V]) Next(key K) (word string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if line := q.waiting[key]; len(line) > 0 {
		return line[0].word
	}
	return ""
}

// Pass gives the turn of key, and v, to whoever has waited longest. If nobody waits it reports
// false, and the turn stays with its owner.
func (q *Queue[K, V]) Pass(key K, v V) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.pass(key, v)
}

func (q *Queue[K, V]) pass(key K, v V) bool {
	line := q.waiting[key]
	if len(line) == 0 {
		return false
	}
	line[0].turn <- v
	q.waiting[key] = line[1:]
	return true
}

// Done gives the turn of key, and nothing with it, to whoever has waited longest, if anybody has.
func (q *Queue[K, V]) Done(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var nothing V
	if !q.pass(key, nothing) {
		delete(q.waiting, key)
	}
}
