package leasetable

import (
	"bytes"
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
)

// maxBatch bounds how many names one statement acquires or frees.
const maxBatch = 1000

// request asks a batcher to acquire or free one name for one caller.
type request struct {
	name    string
	id      []byte // of the lease
	token   int64  // that the name is held with, or was freed with; see knownTokens
	minHold time.Duration
	since   int64 // see priority

	metadata []byte // to attach

	ctx  context.Context //nolint:containedctx // the caller's, for a statement whose first request this is
	done chan struct{}   // closed when the request was run
	// Written before done is closed:
	result result
	err    error
}

// alike reports whether one statement can serve req and other.
func (req *request) alike(other *request) bool {
	return bytes.Equal(req.id, other.id) && req.minHold == other.minHold && bytes.Equal(req.metadata, other.metadata)
}

// withAlike returns req with the requests of queue that can share a statement with it, and the rest of queue.
func (req *request) withAlike(queue []*request) (reqs, rest []*request) {
	reqs = []*request{req}
	for _, other := range queue {
		if len(reqs) < maxBatch && req.alike(other) {
			reqs = append(reqs, other)
		} else {
			rest = append(rest, other)
		}
	}
	return reqs, rest
}

// minHoldUS is minHold in microseconds, or nil.
func (req *request) minHoldUS() any {
	if req.minHold == 0 {
		return nil
	}
	return req.minHold.Microseconds()
}

// result is what a statement did to one name.
type result struct {
	Token     int64 // with which the name was acquired or freed; 0: it was not
	HasWaiter bool  // the name was freed, and another process waits for it
}

// batcher has concurrent callers share a statement, and so a commit: requests that come while statements run are
// batched when one of these ends.
type batcher struct {
	*batchers
	one        func(ctx context.Context, req *request) (result, error) // may wait for a row lock
	retry      func(ctx context.Context, req *request) (result, error) // does what one does, once the row-wait limiter lets it
	saturated  func() bool                                             // reports whether retry would have to wait for the limiter
	many       func(ctx context.Context, reqs []*request) (map[string]result, error)
	within     time.Duration // bounds a statement
	serialized bool          // on SQLite: one statement at a time, and no request bypasses the queue

	running     int           // guarded by mu: how many statements run
	inlineSince time.Time     // guarded by mu: when the one statement began that may wait for a row lock; zero: there is none
	windowOpen  bool          // guarded by mu: the batch window is open: a statement waits for more requests before it is sent
	pace        time.Duration // guarded by mu: how long the last statement for several requests took
	queue       []*request    // guarded by mu: the requests that wait for the next statement
	alarm       *time.Timer   // guarded by mu: starts another statement for the queue if the running ones are slow
	alarmed     bool          // guarded by mu: the alarm is set
}

// batchers is the state that two batchers share. Callers completed by one batch tend to return together, maybe to the
// other batcher. While there are many callers, one statement runs at a time, and the next one serves all of them.
type batchers struct {
	hand     func(f func()) error // runs f in another goroutine
	timeouts timeouts             // of statements

	mu    sync.Mutex
	pair  [2]*batcher // the queue of the first one is served first
	size  int         // guarded by mu: how many callers there were lately
	busy  int         // guarded by mu: how many statements run that are, or could have been, for several requests
	began time.Time   // guarded by mu: when the last statement began
}

// newBatchers has two batchers share their state.
func newBatchers(frees, takes *batcher) {
	c := &batchers{pair: [2]*batcher{frees, takes}}
	for _, s := range c.pair {
		s.batchers = c
		s.alarm = time.AfterFunc(time.Hour, s.alarmRang)
		s.alarm.Stop()
	}
}

// A statement for one name may wait for a row lock. Other requests do not wait for a statement that takes much longer
// than those before it: they get another statement, which waits for no row lock.
const (
	maxRunning     = 3
	maxPace        = 250 * time.Millisecond
	maxBatchWindow = 500 * time.Microsecond
)

// slow is how long a statement may take before the next request stops waiting for it. The caller holds mu.
func (s *batcher) slow() time.Duration { return max(5*time.Millisecond, 2*s.pace) }

// mayStart reports whether a statement can start now. The caller holds mu.
func (s *batcher) mayStart() bool {
	running := s.running
	if !s.inlineSince.IsZero() && !s.serialized && time.Since(s.inlineSince) > s.slow() { // it seems to wait for a row lock
		running--
	}
	switch {
	case s.windowOpen || s.running == maxRunning:
		return false
	case running == 0 && s.busy == 0:
		return true
	}
	return !s.serialized && time.Since(s.began) > s.slow()
}

// start counts a statement that starts, and reports whether it is, or could become, one for several requests. The
// caller holds mu.
func (s *batcher) start() (several bool) {
	s.running++
	s.began = time.Now()
	if several = s.size > 1; several {
		s.busy++
	}
	return several
}

// do runs req. It uses a batch if there are other requests, unless before is set: then a batch was tried before.
func (s *batcher) do(ctx context.Context, req *request, before bool) (result, error) {
	if !s.serialized && (before || req.since != 0 && !s.saturated()) { // a batch leaves the caller's waiter note in the row
		return s.retry(ctx, req)
	}
	if !s.inline(func() { s.run(ctx, []*request{req}, true) }) {
		s.join(ctx, req)
		<-req.done
	}
	return req.result, req.err
}

// inline runs f, a statement for one request, if there are no other requests and it can start now. It reports whether
// it ran f.
func (s *batcher) inline(f func()) bool {
	s.mu.Lock()
	if s.size > 1 || len(s.queue) > 0 || !s.inlineSince.IsZero() || !s.mayStart() {
		s.mu.Unlock()
		return false
	}
	several := s.start()
	s.inlineSince = s.began
	s.mu.Unlock()
	f()
	s.mu.Lock()
	s.inlineSince = time.Time{}
	s.ended(several, 1)
	s.startFlush()
	return true
}

// join adds req to the queue, for a statement that serves all requests that have come by then. req.done is closed
// when that has ended.
func (s *batcher) join(ctx context.Context, req *request) {
	req.ctx, req.done = ctx, make(chan struct{})
	s.mu.Lock()
	s.queue = append(s.queue, req)
	s.startFlush()
}

// leave removes req from the queue, and reports whether it was still there.
func (s *batcher) leave(req *request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.queue)
	s.queue = slices.DeleteFunc(s.queue, func(other *request) bool { return other == req })
	return len(s.queue) < before
}

// next starts a statement for the queued requests, if one can start. The caller holds mu.
func (c *batchers) next() (s *batcher, several bool) {
	for _, s := range c.pair {
		switch {
		case len(s.queue) == 0:
		case s.mayStart():
			return s, s.start()
		case !s.serialized && !s.alarmed:
			s.alarmed = true
			s.alarm.Reset(s.slow())
		}
	}
	return nil, false
}

// alarmRang has a statement run for the requests that wait for a slow one.
func (s *batcher) alarmRang() {
	s.mu.Lock()
	s.alarmed = false
	s.startFlush()
}

// startFlush has another goroutine run statements for the queued requests, if one can start. The caller holds mu, and
// startFlush unlocks it.
func (c *batchers) startFlush() {
	s, several := c.next()
	c.mu.Unlock()
	if s == nil {
		return
	}
	flush := func() { s.flush(several) }
	if c.hand(flush) != nil { // the Locker is closed: every statement fails at once
		flush()
	}
}

// flush runs a statement, which was started, and then others as long as there are queued requests.
func (s *batcher) flush(several bool) {
	for s != nil {
		s.mu.Lock()
		if several {
			s = s.batchWindow()
		}
		var reqs []*request
		if len(s.queue) > 0 {
			reqs, s.queue = s.queue[0].withAlike(s.queue[1:])
		}
		began := time.Now()
		s.began = began
		single := len(reqs) == 1 && !several && s.inlineSince.IsZero()
		if single {
			s.inlineSince = began
		}
		s.mu.Unlock()

		if len(reqs) > 0 {
			s.run(reqs[0].ctx, reqs, single)
		}
		s.mu.Lock()
		if single {
			s.inlineSince = time.Time{}
		}
		if len(reqs) > 1 {
			s.pace = min(time.Since(began), maxPace)
		}
		s.ended(several, len(reqs))
		var next *batcher
		next, several = s.next()
		s.mu.Unlock()
		for _, req := range reqs {
			close(req.done)
		}
		s = next
	}
}

// ended counts a statement, which was for so many callers, as ended. The caller holds mu.
func (s *batcher) ended(several bool, callers int) {
	s.running--
	if several {
		s.busy--
	}
	s.size = min(max(callers+s.waiting(), s.size/2), maxBatch)
}

// waiting is how many requests are queued. The caller holds mu.
func (c *batchers) waiting() int { return len(c.pair[0].queue) + len(c.pair[1].queue) }

// batchWindow waits for as many requests as came lately, for at most ¼ of pace and 0.5 ms. Then it returns the
// batcher to serve: the first of the pair if that has requests and runs no statement, so that all callers come to ask
// for the same. The caller holds mu, which is unlocked meanwhile.
func (s *batcher) batchWindow() *batcher {
	s.windowOpen = true
	for end := time.Now().Add(min(s.pace/4, maxBatchWindow)); s.waiting() < s.size && time.Now().Before(end); {
		s.mu.Unlock()
		runtime.Gosched()
		s.mu.Lock()
	}
	s.windowOpen = false
	if first := s.pair[0]; first.running == 0 && len(first.queue) > 0 {
		s.running--
		first.running++
		return first
	}
	return s
}

// run runs a statement for reqs and writes their results. The statement for a single request may wait for a row
// lock.
func (s *batcher) run(ctx context.Context, reqs []*request, single bool) {
	ctx, done := s.timeouts.with(ctx, s.within)
	defer done()
	if single {
		reqs[0].result, reqs[0].err = s.one(ctx, reqs[0])
		return
	}
	all, err := s.many(ctx, reqs)
	if outcomeKnown(err) && !s.serialized { // nothing was done, maybe because of one request: each goes on alone
		all, err = nil, nil
	}
	for _, req := range reqs {
		req.result, req.err = req.resultOf(all), err
	}
}

// resultOf returns the result for the name of req.
func (req *request) resultOf(all map[string]result) result {
	if got := all[req.name]; req.token == 0 || req.token == got.Token {
		return got
	}
	return result{} // the name was freed for another request
}
