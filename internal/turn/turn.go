// Package turn lets the goroutines of one process take turns: for every key one at a time,
// first come first served. A database sees one contender per process and key, and a session
// that would re-enter on the server never gets the chance to.
package turn

import (
	"context"
	"slices"
	"sync"
)

// Queue hands out turns. The zero value is ready for use.
type Queue[K comparable] struct {
	mu sync.Mutex
	// waiting has an entry for every key whose turn is taken, with those who wait for it in
	// the order they came. Guarded by mu.
	waiting map[K][]chan struct{}
}

// Try takes the turn of key if nobody has it.
func (q *Queue[K]) Try(key K) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, taken := q.waiting[key]; taken {
		return false
	}
	if q.waiting == nil {
		q.waiting = make(map[K][]chan struct{})
	}
	q.waiting[key] = nil
	return true
}

// Wait waits for the turn of key. When ctx ends first it returns context.Cause(ctx), and the
// turn is not taken.
func (q *Queue[K]) Wait(ctx context.Context, key K) error {
	if q.Try(key) {
		return nil
	}
	mine := make(chan struct{})
	q.mu.Lock()
	if _, taken := q.waiting[key]; !taken { // given back since the Try
		q.waiting[key] = nil
		q.mu.Unlock()
		return nil
	}
	q.waiting[key] = append(q.waiting[key], mine)
	q.mu.Unlock()

	select {
	case <-mine:
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	i := slices.Index(q.waiting[key], mine)
	if i >= 0 {
		q.waiting[key] = slices.Delete(q.waiting[key], i, i+1)
	}
	q.mu.Unlock()
	if i < 0 { // it was handed over as ctx ended
		q.Done(key)
	}
	return context.Cause(ctx)
}

// Done gives the turn of key to whoever has waited longest.
func (q *Queue[K]) Done(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting[key]) == 0 {
		delete(q.waiting, key)
		return
	}
	close(q.waiting[key][0])
	q.waiting[key] = q.waiting[key][1:]
}
