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
const maxShare = 1000

// part is what one caller wants of a statement that many share.
type part struct {
	name  string
	id    []byte // the lease
	token int64  // that the name is held with
	keep  time.Duration
	since int64 // see rank

	metadata []byte // to attach

	ctx  context.Context //nolint:containedctx // its caller's, for a statement that it is the first of
	done chan struct{}   // closed when p was run
	// Written before done is closed:
	took taken
	err  error
}

// alike reports whether one statement can do what p and other want.
func (p *part) alike(other *part) bool {
	return bytes.Equal(p.id, other.id) && p.keep == other.keep && bytes.Equal(p.metadata, other.metadata)
}

// withAlike takes those out of the queue that can share a statement with p, and returns them after it.
func (p *part) withAlike(queue []*part) (parts, rest []*part) {
	parts = []*part{p}
	for _, other := range queue {
		if len(parts) < maxShare && p.alike(other) {
			parts = append(parts, other)
		} else {
			rest = append(rest, other)
		}
	}
	return parts, rest
}

// keepUS is keep in microseconds, or nil.
func (p *part) keepUS() any {
	if p.keep == 0 {
		return nil
	}
	return p.keep.Microseconds()
}

// taken is what became of one name.
type taken struct {
	Token  int64 // that the name was taken or freed with; 0: it was not
	Wanted bool  // it was freed, and another process waits for it
}

// sharing has callers who come at the same time share a statement, and so a commit: those who come
// while others have theirs run go together when one of these has ended.
type sharing struct {
	*crowd
	one     func(ctx context.Context, p *part) (taken, error) // may wait for a row that somebody has locked
	again   func(ctx context.Context, p *part) (taken, error) // does what one does, and waits until it may wait
	full    func() bool                                       // reports whether again would wait for that
	many    func(ctx context.Context, parts []*part) (map[string]taken, error)
	within  time.Duration // bounds a statement
	patient bool          // nobody goes alone

	running   int           // guarded by mu: statements
	alone     time.Time     // guarded by mu: when the one of them began that may wait for a row; zero: none may
	gathering bool          // guarded by mu: one of them is not sent yet: more callers are awaited
	pace      time.Duration // guarded by mu: how long the last one for several took
	queue     []*part       // guarded by mu: who waits for the next one
	alarm     *time.Timer   // guarded by mu: has another one run for them if those that run take long
	alarmed   bool          // guarded by mu: it is set
}

// crowd is what two sharings know of their callers together: those who were answered together come
// together again, to the other one maybe. While there are many, one statement runs at a time, and the next one
// is for all.
type crowd struct {
	hand     func(f func()) error // runs f in another goroutine
	timeouts timeouts             // of statements

	mu    sync.Mutex
	both  [2]*sharing // who waits in the first goes first
	size  int         // guarded by mu: how many callers there were lately
	busy  int         // guarded by mu: statements that run for several, or would
	began time.Time   // guarded by mu: when the last statement did
}

// newCrowd makes two sharings.
func newCrowd(frees, takes *sharing) {
	c := &crowd{both: [2]*sharing{frees, takes}}
	for _, s := range c.both {
		s.crowd = c
		s.alarm = time.AfterFunc(time.Hour, s.ring)
		s.alarm.Stop()
	}
}

// A statement for one name may wait for a row that somebody has locked. Others do not wait for one that takes much
// longer than those before it: another one is run for them, which waits for no row.
const (
	maxRunning = 3
	mostPace   = 250 * time.Millisecond
	mostGather = 500 * time.Microsecond
)

// slow is how long a statement may take before the next comer does not wait for it. The caller has mu.
func (s *sharing) slow() time.Duration { return max(5*time.Millisecond, 2*s.pace) }

// mayStart reports whether a statement can start now. The caller has mu.
func (s *sharing) mayStart() bool {
	running := s.running
	if !s.alone.IsZero() && !s.patient && time.Since(s.alone) > s.slow() { // it does wait, as it seems
		running--
	}
	switch {
	case s.gathering || s.running == maxRunning:
		return false
	case running == 0 && s.busy == 0:
		return true
	}
	return !s.patient && time.Since(s.began) > s.slow()
}

// start counts a statement that starts, and reports whether it is for several, or would be. The caller has mu.
func (s *sharing) start() (crowded bool) {
	s.running++
	s.began = time.Now()
	if crowded = s.size > 1; crowded {
		s.busy++
	}
	return crowded
}

// do runs p, together with others unless that was done before.
func (s *sharing) do(ctx context.Context, p *part, before bool) (taken, error) {
	if !s.patient && (before || p.since != 0 && !s.full()) { // for many, a statement leaves since when one waits as it is noted
		return s.again(ctx, p)
	}
	if !s.lone(func() { s.serve(ctx, []*part{p}, true) }) {
		s.join(ctx, p)
		<-p.done
	}
	return p.took, p.err
}

// lone runs f, a statement for one caller, if nobody else is there, and reports whether it did.
func (s *sharing) lone(f func()) bool {
	s.mu.Lock()
	if s.size > 1 || len(s.queue) > 0 || !s.alone.IsZero() || !s.mayStart() {
		s.mu.Unlock()
		return false
	}
	crowded := s.start()
	s.alone = s.began
	s.mu.Unlock()
	f()
	s.mu.Lock()
	s.alone = time.Time{}
	s.ended(crowded, 1)
	s.leadOn()
	return true
}

// join has p run, by a statement for all who have come by then. Its end is that of p.done.
func (s *sharing) join(ctx context.Context, p *part) {
	p.ctx, p.done = ctx, make(chan struct{})
	s.mu.Lock()
	s.queue = append(s.queue, p)
	s.leadOn()
}

// leave takes p out of the queue, and reports whether it was there still.
func (s *sharing) leave(p *part) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.queue)
	s.queue = slices.DeleteFunc(s.queue, func(other *part) bool { return other == p })
	return len(s.queue) < before
}

// next starts a statement for those who wait, if one can start. The caller has mu.
func (c *crowd) next() (s *sharing, crowded bool) {
	for _, s := range c.both {
		switch {
		case len(s.queue) == 0:
		case s.mayStart():
			return s, s.start()
		case !s.patient && !s.alarmed:
			s.alarmed = true
			s.alarm.Reset(s.slow())
		}
	}
	return nil, false
}

// ring has a statement run for those who wait for one that takes its time.
func (s *sharing) ring() {
	s.mu.Lock()
	s.alarmed = false
	s.leadOn()
}

// leadOn has another goroutine run statements for those who wait, if one can start. The caller has mu, and
// has it no more.
func (c *crowd) leadOn() {
	s, crowded := c.next()
	c.mu.Unlock()
	if s == nil {
		return
	}
	lead := func() { s.lead(crowded) }
	if c.hand(lead) != nil { // of a closed Locker every statement fails at once
		lead()
	}
}

// lead runs a statement, which was started, and then others as long as somebody waits.
func (s *sharing) lead(crowded bool) {
	for s != nil {
		s.mu.Lock()
		if crowded {
			s = s.gather()
		}
		var parts []*part
		if len(s.queue) > 0 {
			parts, s.queue = s.queue[0].withAlike(s.queue[1:])
		}
		began := time.Now()
		s.began = began
		alone := len(parts) == 1 && !crowded && s.alone.IsZero()
		if alone {
			s.alone = began
		}
		s.mu.Unlock()

		if len(parts) > 0 {
			s.serve(parts[0].ctx, parts, alone)
		}
		s.mu.Lock()
		if alone {
			s.alone = time.Time{}
		}
		if len(parts) > 1 {
			s.pace = min(time.Since(began), mostPace)
		}
		s.ended(crowded, len(parts))
		var next *sharing
		next, crowded = s.next()
		s.mu.Unlock()
		for _, p := range parts {
			close(p.done)
		}
		s = next
	}
}

// ended counts a statement, which was for so many callers, as ended. The caller has mu.
func (s *sharing) ended(crowded bool, callers int) {
	s.running--
	if crowded {
		s.busy--
	}
	s.size = min(max(callers+s.waiting(), s.size/2), maxShare)
}

// waiting is how many wait for the next statements. The caller has mu.
func (c *crowd) waiting() int { return len(c.both[0].queue) + len(c.both[1].queue) }

// gather waits until as many have come as came lately, but not long beside what a statement takes. It returns
// whose turn it is then: so they all come to ask for the same. The caller has mu.
func (s *sharing) gather() *sharing {
	s.gathering = true
	for end := time.Now().Add(min(s.pace/4, mostGather)); s.waiting() < s.size && time.Now().Before(end); {
		s.mu.Unlock()
		runtime.Gosched()
		s.mu.Lock()
	}
	s.gathering = false
	if first := s.both[0]; first.running == 0 && len(first.queue) > 0 {
		s.running--
		first.running++
		return first
	}
	return s
}

// serve runs a statement for parts, and notes what came of it. That for one who is alone may wait for a row.
func (s *sharing) serve(ctx context.Context, parts []*part, alone bool) {
	ctx, done := s.timeouts.with(ctx, s.within)
	defer done()
	if alone {
		parts[0].took, parts[0].err = s.one(ctx, parts[0])
		return
	}
	all, err := s.many(ctx, parts)
	if answered(err) && !s.patient { // nothing was done because of one of them, maybe: each goes on alone
		all, err = nil, nil
	}
	for _, p := range parts {
		p.took, p.err = p.tookOf(all), err
	}
}

// tookOf finds what became of p's name.
func (p *part) tookOf(all map[string]taken) taken {
	if took := all[p.name]; p.token == 0 || p.token == took.Token {
		return took
	}
	return taken{} // another part of that name was freed
}
