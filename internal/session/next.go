package session

import (
	"slices"
	"time"

	"github.com/sqllock/sqllock"
)

// linger is how long a session waits for the next call before it starts to watch its connection: interrupting a watch
// costs more than a statement does.
const linger = 2 * time.Millisecond

// next waits for a batch to run, and returns nil when there was none for some time. The error is why the session has to
// end.
func (s *state[K]) next() (*batch[K], error) {
	for {
		s.mu.Lock()
		b, quiet, err := s.due()
		if b != nil || quiet || err != nil {
			s.mu.Unlock()
			return b, err
		}
		if s.waiting = time.Now(); !s.lulled { // seldom: hush resets the timer, not every call
			s.lulled = true
			s.lull.Reset(linger)
		}
		s.mu.Unlock()
		<-s.bell
	}
}

// due returns the results of next, if anything is due. The caller holds mu.
func (s *state[K]) due() (b *batch[K], quiet bool, err error) {
	if s.lent { // the borrower rings
		return nil, false, nil
	}
	b, quiet = s.late, s.quiet
	s.late, s.quiet, s.waiting = nil, false, time.Time{}
	switch {
	case b != nil:
		return b, false, nil
	case s.err != nil: // its deadline passed
		return nil, false, s.err
	case s.stopped:
		return nil, false, sqllock.ErrClosed
	}
	return s.take(), quiet, nil
}

// maxBatch bounds the operations in one statement.
const maxBatch = 512

// take removes from the queue the calls that can run together: one with work, or as many with ops as there are. The
// caller holds mu.
func (s *state[K]) take() *batch[K] {
	n := 0
	for n < len(s.queue) && n < maxBatch && s.queue[n].work == nil {
		n++
	}
	if n == 0 {
		n = min(1, len(s.queue))
	}
	if n == 0 {
		return nil
	}
	s.taken = append(s.taken[:0], s.queue[:n]...)
	s.queue = slices.Delete(s.queue, 0, n)
	s.alone = n == 1 && len(s.queue) == 0
	return &batch[K]{calls: s.taken}
}

// hush makes next return when it has waited for linger.
func (s *state[K]) hush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lulled = !s.waiting.IsZero(); !s.lulled {
		return
	}
	left := linger - time.Since(s.waiting)
	if s.lent {
		left = linger
	}
	if left > 0 {
		s.lull.Reset(left)
		return
	}
	s.quiet, s.lulled = true, false
	s.ring()
}

// ring makes next check again.
func (s *state[K]) ring() {
	select {
	case s.bell <- struct{}{}:
	default:
	}
}
