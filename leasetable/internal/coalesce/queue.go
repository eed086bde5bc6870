// Package coalesce has concurrent callers share a statement, and so a commit: requests that come while statements run
// are served together when one of these ends. It knows nothing of locks.
package coalesce

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"
)

// Kind is one kind of statement.
type Kind[R, T any] struct {
	// One serves a single request. It may wait for a row lock.
	One func(ctx context.Context, request R) (T, error)

	// Many serves requests that are alike, and returns their results in the same order. It waits for no row lock.
	Many func(ctx context.Context, requests []R) ([]T, error)

	// Within bounds a statement.
	Within time.Duration
}

// Call is the request of one caller.
type Call[R, T any] struct {
	request R
	ctx     context.Context //nolint:containedctx // the caller's; see longest
	done    chan struct{}   // closed when the request was served

	// Written before done is closed:
	result T
	err    error
}

// NewCall returns a call for [Queue.Serve].
func NewCall[R, T any](ctx context.Context, request R) *Call[R, T] {
	return &Call[R, T]{request: request, ctx: ctx, done: make(chan struct{})}
}

// Left is how much time the caller has.
func (c *Call[R, T]) Left() time.Duration {
	if end, ok := c.ctx.Deadline(); ok {
		return time.Until(end)
	}
	return math.MaxInt64
}

// Done is closed when the request was served.
func (c *Call[R, T]) Done() <-chan struct{} { return c.done }

// Result returns the result of a request that was served.
func (c *Call[R, T]) Result() (T, error) { return c.result, c.err }

// Queue has the callers of one kind of statement share it.
type Queue[R, T any] struct {
	*pair[R, T]
	kind Kind[R, T]

	running     int           // guarded by mu: how many statements run
	inlineSince time.Time     // guarded by mu: when the one statement began that may wait for a row lock; zero: there is none
	windowOpen  bool          // guarded by mu: the batch window is open: a statement waits for more requests before it is sent
	pace        time.Duration // guarded by mu: how long the last statement for several requests took
	calls       []*Call[R, T] // guarded by mu: the calls that wait for the next statement
	alarm       *time.Timer   // guarded by mu: starts another statement for the queue if the running ones are slow
	alarmed     bool          // guarded by mu: the alarm is set
}

// pair is the state that two queues share. While there are many callers, one statement runs at a time, and the next one
// serves all of them: see "The batch window" in chapter 6 of docs/design.md.
type pair[R, T any] struct {
	hand       func(f func()) error // runs f in another goroutine
	alike      func(a, b R) bool    // whether one statement can serve both requests
	serialized bool                 // one statement of each queue at a time, and no request bypasses the queue

	mu     sync.Mutex
	queues [2]*Queue[R, T] // the first one is served first
	size   int             // guarded by mu: how many callers there were lately
	busy   int             // guarded by mu: how many statements run that are, or could have been, for several requests
	began  time.Time       // guarded by mu: when the last statement began
}

// New returns two queues that share their state. hand runs a function in another goroutine; if it fails, the function is
// run at once. alike reports whether one statement can serve both requests. If serialized is true, the statements of a
// queue wait for each other in any case: one at a time.
func New[R, T any](
	hand func(f func()) error, alike func(a, b R) bool, serialized bool, a, b Kind[R, T],
) (first, second *Queue[R, T]) {
	p := &pair[R, T]{hand: hand, alike: alike, serialized: serialized}
	for i, kind := range []Kind[R, T]{a, b} {
		q := &Queue[R, T]{pair: p, kind: kind}
		q.alarm = time.AfterFunc(time.Hour, q.alarmRang)
		q.alarm.Stop()
		p.queues[i] = q
	}
	return p.queues[0], p.queues[1]
}

// Do serves a request, together with others if there are any.
func (q *Queue[R, T]) Do(ctx context.Context, request R) (T, error) {
	var result T
	var err error
	alone := q.Inline(func() {
		ctx, cancel := context.WithTimeout(ctx, q.kind.Within)
		defer cancel()
		result, err = q.kind.One(ctx, request)
	})
	if !alone {
		call := q.Join(ctx, request)
		<-call.done
		return call.result, call.err
	}
	return result, err
}

// Inline runs f, a statement for one request that may wait for a row lock, if there are no other requests and it can
// start now. It reports whether it ran f. Handing a statement to another goroutine costs a tenth of it.
func (q *Queue[R, T]) Inline(f func()) bool {
	q.mu.Lock()
	if q.size > 1 || len(q.calls) > 0 || !q.inlineSince.IsZero() || !q.mayStart() {
		q.mu.Unlock()
		return false
	}
	several := q.start()
	q.inlineSince = q.began
	q.mu.Unlock()
	defer func() { // also if f panics
		q.mu.Lock()
		q.inlineSince = time.Time{}
		q.ended(several, 1)
		q.startFlush()
	}()
	f()
	return true
}

// Join queues a request for a statement that serves all requests that have come by then. The statement has the values
// and the end of one of their contexts: the one that ends last.
func (q *Queue[R, T]) Join(ctx context.Context, request R) *Call[R, T] {
	call := NewCall[R, T](ctx, request)
	q.mu.Lock()
	q.calls = append(q.calls, call)
	q.startFlush()
	return call
}

// Leave takes a call out of the queue, and reports whether it was still there.
func (q *Queue[R, T]) Leave(call *Call[R, T]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	before := len(q.calls)
	q.calls = slices.DeleteFunc(q.calls, func(other *Call[R, T]) bool { return other == call })
	return len(q.calls) < before
}

// Serve runs statements for calls that bypass the queue, one for each set of alike requests.
func (q *Queue[R, T]) Serve(calls []*Call[R, T]) {
	defer func() { answer(calls, false) }() // if a driver ends the goroutine
	for len(calls) > 0 {
		some, rest := q.firstAlike(calls)
		q.run(longest(some), some, false)
		answer(some, true)
		calls = rest
	}
}
