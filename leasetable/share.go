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

	crowded bool // its statement was started while there were many callers

	done chan struct{} // closed when p was run, or is to be run by its caller
	// Written before done is closed:
	lead bool // it is for this caller to run the next statement
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
// while others run theirs go together when one of these has ended.
type sharing struct {
	*crowd
	run     func(ctx context.Context, parts []*part) (map[string]taken, error)
	patient bool // nobody goes alone

	running   int           // guarded by mu: statements
	gathering bool          // guarded by mu: one of them is not sent yet: more callers are awaited
	pace      time.Duration // guarded by mu: how long the last one for several took
	queue     []*part       // guarded by mu: who waits for the next one
}

// crowd is what two sharings know of their callers together: those who were answered together come
// together again, to the other one maybe. While there are many, one statement runs at a time, and the next one
// is for all.
type crowd struct {
	mu    sync.Mutex
	both  [2]*sharing // who waits in the first goes first
	size  int         // guarded by mu: how many callers there were lately
	busy  int         // guarded by mu: statements that run for several, or would
	began time.Time   // guarded by mu: when the last statement did
}

// newCrowd makes two sharings.
func newCrowd(frees, takes *sharing) {
	c := &crowd{both: [2]*sharing{frees, takes}}
	frees.crowd, takes.crowd = c, c
}

// A statement may wait for a row that somebody has locked. Others do not wait for one that takes much
// longer than those before it: they run another one.
const (
	maxRunning = 3
	mostPace   = 250 * time.Millisecond
	mostGather = 500 * time.Microsecond
)

// slow is how long a statement may take before the next comer does not wait for it. The caller has mu.
func (s *sharing) slow() time.Duration { return max(5*time.Millisecond, 2*s.pace) }

// patience is how long one waits in any case. The caller has mu.
func (s *sharing) patience() time.Duration { return max(20*time.Millisecond, 4*s.pace) }

// mayStart reports whether a statement can start now. The caller has mu.
func (s *sharing) mayStart() bool {
	switch {
	case s.gathering || s.running == maxRunning:
		return false
	case s.running == 0 && s.busy == 0:
		return true
	}
	return !s.patient && time.Since(s.began) > s.slow()
}

// start counts p's statement, which starts. The caller has mu.
func (s *sharing) start(p *part) {
	s.running++
	s.began = time.Now()
	if p.crowded = s.size > 1; p.crowded {
		s.busy++
	}
}

// do runs p, together with others unless that was done before. The first of those who had to wait runs the next statement.
func (s *sharing) do(ctx context.Context, p *part, before bool) (taken, error) {
	if (before || p.since != 0) && !s.patient {
		return s.alone(ctx, p)
	}
	s.mu.Lock()
	if s.mayStart() {
		s.start(p)
	} else {
		p.done = make(chan struct{})
		s.queue = append(s.queue, p)
		patience := s.patience()
		s.mu.Unlock()
		if s.left(p, patience) {
			return s.alone(ctx, p)
		}
		if !p.lead {
			return p.took, p.err
		}
		s.mu.Lock()
	}
	if p.crowded {
		s.gather()
	}
	var parts []*part
	parts, s.queue = p.withAlike(s.queue)
	began := time.Now()
	s.began = began
	s.mu.Unlock()

	s.serve(ctx, parts)
	for _, other := range parts[1:] {
		close(other.done)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(parts) > 1 {
		s.pace = min(time.Since(began), mostPace)
	}
	s.ended(p, len(parts))
	return p.took, p.err
}

// lone runs f, a statement for one caller, if nobody else is there, and reports whether it did.
func (s *sharing) lone(f func()) bool {
	s.mu.Lock()
	if s.size > 1 || len(s.queue) > 0 || !s.mayStart() {
		s.mu.Unlock()
		return false
	}
	p := new(part)
	s.start(p)
	s.mu.Unlock()
	f()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended(p, 1)
	return true
}

// ended counts p's statement, which was for so many callers, as ended. The caller has mu.
func (s *sharing) ended(p *part, callers int) {
	s.running--
	if p.crowded {
		s.busy--
	}
	s.size = min(max(callers+len(s.both[0].queue)+len(s.both[1].queue), s.size/2), maxShare)
	for _, next := range s.both {
		next.lead()
	}
}

// lead has the first of those who wait run a statement, if one can start. The caller has mu.
func (s *sharing) lead() {
	if len(s.queue) == 0 || !s.mayStart() {
		return
	}
	first := s.queue[0]
	s.queue = slices.Delete(s.queue, 0, 1)
	s.start(first)
	first.lead = true
	close(first.done)
}

// gather waits until as many have come as came lately, but not long beside what a statement takes. The caller
// has mu.
func (s *sharing) gather() {
	s.gathering = true
	for end := time.Now().Add(min(s.pace/4, mostGather)); len(s.queue)+1 < s.size && time.Now().Before(end); {
		s.mu.Unlock()
		runtime.Gosched()
		s.mu.Lock()
	}
	s.gathering = false
}

// serve runs a statement for parts, and notes what came of it.
func (s *sharing) serve(ctx context.Context, parts []*part) {
	all, err := s.run(ctx, parts)
	if len(parts) > 1 && answered(err) { // nothing was done because of one of them, maybe
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

// left waits until p is done, and reports whether it has left the queue after a time instead.
func (s *sharing) left(p *part, patience time.Duration) bool {
	if s.patient {
		<-p.done
		return false
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.done:
		return false
	case <-timer.C:
	}
	s.mu.Lock()
	i := slices.Index(s.queue, p)
	if i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
	}
	s.mu.Unlock()
	if i < 0 {
		<-p.done
	}
	return i >= 0
}

func (s *sharing) alone(ctx context.Context, p *part) (taken, error) {
	took, err := s.run(ctx, []*part{p})
	return p.tookOf(took), err
}
