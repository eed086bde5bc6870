package session

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sqllock/sqllock"
)

// watchAfter is how long a session waits for the next call before it starts to watch its connection: interrupting a watch
// costs more than a statement does.
const watchAfter = 2 * time.Millisecond

// cutTime is the remaining time of a context below which its deadline may well end a statement, and the session with
// it.
const cutTime = 100 * time.Millisecond

// errCut is the error of a session whose caller left in the middle of a statement.
var errCut = errors.New("the caller who ran a statement left")

// errPanicked is the error of a session whose caller did not come to the end of a statement.
var errPanicked = errors.New("a caller panicked in the middle of a statement")

// errUnreturned is the error of a session whose goroutine a driver, or a hook of it, has ended.
var errUnreturned = errors.New("a driver ended the goroutine of the session")

// answerTime is how long a borrower waits for an answer before the session's goroutine does.
const answerTime = time.Millisecond

// errFull says that a shared session has no room now: it has as many locks as it may, or would if all calls under way get one.
var errFull = errors.New("the session holds as many locks as it may")

// loan says when a caller may borrow the connection.
type loan int

const (
	noLoan    loan = iota
	emptyLoan      // from a session that holds nothing
	anyLoan
)

// loanFor returns the loan for a caller with ctx. If the caller may leave, the connection must be one that another goroutine
// can resume, or one that holds nothing and can be closed. The caller of loanFor does not hold mu: ctx may be of a type of
// the user's, whose methods take their time.
func (s *session[K]) loanFor(ctx context.Context) loan {
	if ctx.Err() != nil {
		return noLoan
	}
	if s.resumer != nil || ctx.Done() == nil {
		return anyLoan
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= cutTime {
		return noLoan
	}
	return emptyLoan
}

// enqueue has the session's goroutine run calls. If that is idle, and the caller may borrow the connection, it reports
// that the connection is lent, and the caller is to run them.
func (s *session[K]) enqueue(calls []*call[K], l loan) (lent bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return false, &endedError{s.err}
	case calls[0].lock != nil && !s.dedicated && len(s.held)+s.pending >= s.Limits.Locks:
		return false, errFull
	}
	lent = calls[0].work == nil && s.mayLend(l)
	s.pending += len(calls)
	s.used = time.Now()
	if lent {
		s.lent = true
		return true, nil
	}
	s.queue = append(s.queue, calls...)
	s.wake()
	return false, nil
}

// mayLend reports whether the connection may be lent for one statement. That saves two goroutine switches, which cost up
// to a tenth of the statement. Many callers get more from one statement for all. The caller holds mu.
func (s *session[K]) mayLend(l loan) bool {
	idle := !s.lent && s.unfinished == nil && !s.waiting.IsZero() && !s.watchDue && len(s.queue) == 0 && !s.stopped
	if !idle || !s.alone || time.Since(s.pinged) >= s.Timing.Heartbeat {
		return false
	}
	return l == anyLoan || l == emptyLoan && len(s.held)+s.moving+s.pending == 0
}

// endLoan gives the borrowed connection back after b ended with err.
func (s *session[K]) endLoan(b *batch[K], err error) {
	unfinished := errors.Is(err, errUnfinished)
	if err != nil && !unfinished {
		s.end(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lent, s.waiting = false, time.Now()
	if unfinished {
		b.ctx, s.unfinished = nil, b
	}
	if unfinished || len(s.queue) > 0 || s.watchDue || s.stopped || s.err != nil {
		s.ring()
	}
}

// next waits for a batch to run, and returns nil when there was none for some time. The error is why the session has to
// end.
func (s *state[K]) next() (*batch[K], error) {
	for {
		s.mu.Lock()
		b, watch, err := s.due()
		if b != nil || watch || err != nil {
			s.mu.Unlock()
			return b, err
		}
		if s.waiting = time.Now(); !s.watchTimed { // seldom: dueToWatch resets the timer, not every call
			s.watchTimed = true
			s.watchTimer.Reset(watchAfter)
		}
		s.mu.Unlock()
		<-s.bell
	}
}

// due returns the results of next, if anything is due. The caller holds mu.
func (s *state[K]) due() (b *batch[K], watch bool, err error) {
	if s.lent { // the borrower rings
		return nil, false, nil
	}
	b, watch = s.unfinished, s.watchDue
	s.unfinished, s.watchDue, s.waiting = nil, false, time.Time{}
	switch {
	case b != nil:
		return b, false, nil
	case s.err != nil: // its deadline passed
		return nil, false, s.err
	case s.stopped:
		return nil, false, sqllock.ErrClosed
	}
	return s.take(), watch, nil
}

// maxBatch bounds the operations in one statement.
const maxBatch = 512

// take removes from the queue the calls that can run together: one with work, or as many with ops as there are. The
// caller holds mu.
func (s *state[K]) take() *batch[K] {
	if len(s.queue) == 0 {
		return nil
	}
	n := 0
	for n < len(s.queue) && n < maxBatch && s.queue[n].work == nil {
		n++
	}
	n = max(n, 1)
	s.taken = append(s.taken[:0], s.queue[:n]...)
	s.queue = slices.Delete(s.queue, 0, n)
	s.alone = n == 1 && len(s.queue) == 0
	return &batch[K]{calls: s.taken}
}

// dueToWatch makes next return when it has waited for watchAfter.
func (s *state[K]) dueToWatch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watchTimed = !s.waiting.IsZero(); !s.watchTimed {
		return
	}
	left := watchAfter - time.Since(s.waiting)
	if s.lent {
		left = watchAfter
	}
	if left > 0 {
		s.watchTimer.Reset(left)
		return
	}
	s.watchDue, s.watchTimed = true, false
	s.ring()
}

// wake makes next check again, also while the session watches its connection. The caller holds mu.
func (s *state[K]) wake() {
	if s.interrupt != nil {
		s.interrupt()
	}
	s.ring()
}

// ring makes next check again.
func (s *state[K]) ring() {
	select {
	case s.bell <- struct{}{}:
	default:
	}
}
