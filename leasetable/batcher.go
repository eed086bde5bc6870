package leasetable

import (
	"bytes"
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
)

// maxShare is how many names one statement takes or frees.
const maxBatch = 1000

// part is what one caller wants of a statement that many share.
type request struct {
	name    string
	id      []byte // the lease
	token   int64  // that the name is held with
	minHold time.Duration
	since   int64 // see rank

	metadata []byte // to attach

	ctx  context.Context //nolint:containedctx // its caller's, for a statement that it is the first of
	done chan struct{}   // closed when p was run
	// Written before done is closed:
	result result
	err    error
}

// alike reports whether one statement can do what p and other want.
func (req *request) alike(other *request) bool {
	return bytes.Equal(req.id, other.id) && req.minHold == other.minHold && bytes.Equal(req.metadata, other.metadata)
}

// withAlike takes those out of the queue that can share a statement with p, and returns them after it.
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

// keepUS is keep in microseconds, or nil.
func (req *request) minHoldUS() any {
	if req.minHold == 0 {
		return nil
	}
	return req.minHold.Microseconds()
}

// taken is what became of one name.
type result struct {
	Token     int64 // that the name was taken or freed with; 0: it was not
	HasWaiter bool  // it was freed, and another process waits for it
}

// sharing has callers who come at the same time share a statement, and so a commit: those who come
// while others have theirs run go together when one of these has ended.
type batcher struct {
	*batchers
	one        func(ctx context.Context, req *request) (result, error) // may wait for a row that somebody has locked
	retry      func(ctx context.Context, req *request) (result, error) // does what one does, and waits until it may wait
	saturated  func() bool                                             // reports whether again would wait for that
	many       func(ctx context.Context, reqs []*request) (map[string]result, error)
	within     time.Duration // bounds a statement
	serialized bool          // nobody goes alone

	running     int           // guarded by mu: statements
	inlineSince time.Time     // guarded by mu: when the one of them began that may wait for a row; zero: none may
	windowOpen  bool          // guarded by mu: one of them is not sent yet: more callers are awaited
	pace        time.Duration // guarded by mu: how long the last one for several took
	queue       []*request    // guarded by mu: who waits for the next one
	alarm       *time.Timer   // guarded by mu: has another one run for them if those that run take long
	alarmed     bool          // guarded by mu: it is set
}

// crowd is what two sharings know of their callers together: those who were answered together come
// together again, to the other one maybe. While there are many, one statement runs at a time, and the next one
// is for all.
type batchers struct {
	hand     func(f func()) error // runs f in another goroutine
	timeouts timeouts             // of statements

	mu    sync.Mutex
	pair  [2]*batcher // who waits in the first goes first
	size  int         // guarded by mu: how many callers there were lately
	busy  int         // guarded by mu: statements that run for several, or would
	began time.Time   // guarded by mu: when the last statement did
}

// newCrowd makes two sharings.
func newBatchers(frees, takes *batcher) {
	c := &batchers{pair: [2]*batcher{frees, takes}}
	for _, s := range c.pair {
		s.batchers = c
		s.alarm = time.AfterFunc(time.Hour, s.alarmRang)
		s.alarm.Stop()
	}
}

// A statement for one name may wait for a row that somebody has locked. Others do not wait for one that takes much
// longer than those before it: another one is run for them, which waits for no row.
const (
	maxRunning     = 3
	maxPace        = 250 * time.Millisecond
	maxBatchWindow = 500 * time.Microsecond
)

// slow is how long a statement may take before the next comer does not wait for it. The caller has mu.
func (s *batcher) slow() time.Duration { return max(5*time.Millisecond, 2*s.pace) }

// mayStart reports whether a statement can start now. The caller has mu.
func (s *batcher) mayStart() bool {
	running := s.running
	if !s.inlineSince.IsZero() && !s.serialized && time.Since(s.inlineSince) > s.slow() { // it does wait, as it seems
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

// start counts a statement that starts, and reports whether it is for several, or would be. The caller has mu.
func (s *batcher) start() (crowded bool) {
	s.running++
	s.began = time.Now()
	if crowded = s.size > 1; crowded {
		s.busy++
	}
	return crowded
}

// do runs p, together with others unless that was done before.
func (s *batcher) do(ctx context.Context, req *request, before bool) (result, error) {
	if !s.serialized && (before || req.since != 0 && !s.saturated()) { // for many, a statement leaves since when one waits as it is noted
		return s.retry(ctx, req)
	}
	if !s.inline(func() { s.run(ctx, []*request{req}, true) }) {
		s.join(ctx, req)
		<-req.done
	}
	return req.result, req.err
}

// lone runs f, a statement for one caller, if nobody else is there, and reports whether it did.
func (s *batcher) inline(f func()) bool {
	s.mu.Lock()
	if s.size > 1 || len(s.queue) > 0 || !s.inlineSince.IsZero() || !s.mayStart() {
		s.mu.Unlock()
		return false
	}
	crowded := s.start()
	s.inlineSince = s.began
	s.mu.Unlock()
	f()
	s.mu.Lock()
	s.inlineSince = time.Time{}
	s.ended(crowded, 1)
	s.startFlush()
	return true
}

// join has p run, by a statement for all who have come by then. Its end is that of p.done.
func (s *batcher) join(ctx context.Context, req *request) {
	req.ctx, req.done = ctx, make(chan struct{})
	s.mu.Lock()
	s.queue = append(s.queue, req)
	s.startFlush()
}

// leave takes p out of the queue, and reports whether it was there still.
func (s *batcher) leave(req *request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.queue)
	s.queue = slices.DeleteFunc(s.queue, func(other *request) bool { return other == req })
	return len(s.queue) < before
}

// next starts a statement for those who wait, if one can start. The caller has mu.
func (c *batchers) next() (s *batcher, crowded bool) {
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

// ring has a statement run for those who wait for one that takes its time.
func (s *batcher) alarmRang() {
	s.mu.Lock()
	s.alarmed = false
	s.startFlush()
}

// leadOn has another goroutine run statements for those who wait, if one can start. The caller has mu, and
// has it no more.
func (c *batchers) startFlush() {
	s, crowded := c.next()
	c.mu.Unlock()
	if s == nil {
		return
	}
	lead := func() { s.flush(crowded) }
	if c.hand(lead) != nil { // of a closed Locker every statement fails at once
		lead()
	}
}

// lead runs a statement, which was started, and then others as long as somebody waits.
func (s *batcher) flush(crowded bool) {
	for s != nil {
		s.mu.Lock()
		if crowded {
			s = s.batchWindow()
		}
		var reqs []*request
		if len(s.queue) > 0 {
			reqs, s.queue = s.queue[0].withAlike(s.queue[1:])
		}
		began := time.Now()
		s.began = began
		alone := len(reqs) == 1 && !crowded && s.inlineSince.IsZero()
		if alone {
			s.inlineSince = began
		}
		s.mu.Unlock()

		if len(reqs) > 0 {
			s.run(reqs[0].ctx, reqs, alone)
		}
		s.mu.Lock()
		if alone {
			s.inlineSince = time.Time{}
		}
		if len(reqs) > 1 {
			s.pace = min(time.Since(began), maxPace)
		}
		s.ended(crowded, len(reqs))
		var next *batcher
		next, crowded = s.next()
		s.mu.Unlock()
		for _, req := range reqs {
			close(req.done)
		}
		s = next
	}
}

// ended counts a statement, which was for so many callers, as ended. The caller has mu.
func (s *batcher) ended(crowded bool, callers int) {
	s.running--
	if crowded {
		s.busy--
	}
	s.size = min(max(callers+s.waiting(), s.size/2), maxBatch)
}

// waiting is how many wait for the next statements. The caller has mu.
func (c *batchers) waiting() int { return len(c.pair[0].queue) + len(c.pair[1].queue) }

// gather waits until as many have come as came lately, but not long beside what a statement takes. It returns
// whose turn it is then: so they all come to ask for the same. The caller has mu.
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

// serve runs a statement for parts, and notes what came of it. That for one who is alone may wait for a row.
func (s *batcher) run(ctx context.Context, reqs []*request, alone bool) {
	ctx, done := s.timeouts.with(ctx, s.within)
	defer done()
	if alone {
		reqs[0].result, reqs[0].err = s.one(ctx, reqs[0])
		return
	}
	all, err := s.many(ctx, reqs)
	if outcomeKnown(err) && !s.serialized { // nothing was done because of one of them, maybe: each goes on alone
		all, err = nil, nil
	}
	for _, req := range reqs {
		req.result, req.err = req.resultOf(all), err
	}
}

// tookOf finds what became of p's name.
func (req *request) resultOf(all map[string]result) result {
	if got := all[req.name]; req.token == 0 || req.token == got.Token {
		return got
	}
	return result{} // another part of that name was freed
}
