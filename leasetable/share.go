package leasetable

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
)

const (
	maxShare = 1000 // names that one statement takes or frees
	longName = 128  // bytes; a longer one has a statement of its own, and so has longer metadata
)

// part is what one caller wants of a statement that many share.
type part struct {
	name  string
	id    []byte // the lease
	token int64  // that the name is held with
	keep  time.Duration
	since int64 // see rank

	metadata []byte // to attach

	done chan struct{} // closed when p was run, or is to be run by its caller
	// Written before done is closed:
	lead bool // it is for this caller to run the next statement
	took taken
	err  error
}

// long reports whether p has a statement of its own.
func (p *part) long() bool { return max(len(p.name), len(p.metadata)) > longName }

// taken is what became of one name.
type taken struct {
	Token  int64 // that the name was taken or freed with; 0: it was not
	Wanted bool  // it was freed, and another process waits for it
}

// sharing has callers who come at the same time share a statement, and so a commit: those who come
// while others run theirs go together when one of these has ended.
type sharing struct {
	run     func(ctx context.Context, parts []*part) (map[string]taken, error)
	patient bool // nobody goes alone

	mu      sync.Mutex
	running int           // guarded by mu: statements
	began   time.Time     // guarded by mu: when the last of them did
	crowd   bool          // guarded by mu: it was for several
	pace    time.Duration // guarded by mu: how long the last one for several took
	queue   []*part       // guarded by mu: who waits for the next one
}

// A statement may wait for a row that somebody has locked. Others do not wait for one that takes much
// longer than those before it: they run another one.
const (
	maxRunning = 3
	mostPace   = 250 * time.Millisecond
)

// slow is how long a statement may take before the next comer does not wait for it. The caller has mu.
func (s *sharing) slow() time.Duration { return max(5*time.Millisecond, 2*s.pace) }

// patience is how long one waits in any case. The caller has mu.
func (s *sharing) patience() time.Duration { return max(20*time.Millisecond, 4*s.pace) }

// do runs p, together with others unless that was done before. The first of those who had to wait runs the next statement.
func (s *sharing) do(ctx context.Context, p *part, before bool) (taken, error) {
	if (before || p.since != 0) && !s.patient || p.long() {
		return s.alone(ctx, p)
	}
	s.mu.Lock()
	if s.running == 0 && s.crowd { // those who were answered together come together
		s.crowd = false
		s.mu.Unlock()
		runtime.Gosched()
		s.mu.Lock()
	}
	if s.running == maxRunning || s.running > 0 && (s.patient || time.Since(s.began) < s.slow()) {
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
	} else {
		s.running++
	}
	n := min(len(s.queue), maxShare-1)
	parts := append([]*part{p}, s.queue[:n]...)
	s.queue = slices.Delete(s.queue, 0, n)
	began := time.Now()
	s.began, s.crowd = began, n > 0
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
	if len(s.queue) == 0 {
		s.running--
	} else {
		s.queue[0].lead = true
		close(s.queue[0].done)
		s.queue = slices.Delete(s.queue, 0, 1)
	}
	return p.took, p.err
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
