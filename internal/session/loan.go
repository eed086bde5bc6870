package session

import (
	"context"
	"errors"
	"time"
)

// mayLend reports whether a caller may borrow the connection for one statement. That saves two goroutine switches,
// which cost up to a tenth of the statement. If the caller may leave, the connection must be one that another goroutine
// can resume, or one that holds nothing and can be closed. Many callers get more from one statement for all. The caller
// of mayLend holds mu.
func (s *session[K]) mayLend(ctx context.Context) bool {
	idle := !s.lent && s.late == nil && !s.waiting.IsZero() && !s.quiet && len(s.queue) == 0 && !s.stopped
	if !idle || !s.alone || ctx.Err() != nil || time.Since(s.pinged) >= s.Timing.Heartbeat {
		return false
	}
	if s.resumer != nil || ctx.Done() == nil {
		return true
	}
	deadline, ok := ctx.Deadline()
	return len(s.held)+s.moving+s.pending == 0 && (!ok || time.Until(deadline) > cutTime)
}

// cutTime is the remaining time of a context below which its deadline may well end a statement, and the session with
// it.
const cutTime = 100 * time.Millisecond

// errCut is the error of a session whose caller left in the middle of a statement.
var errCut = errors.New("the caller who ran a statement left")

// errPanicked is the error of a session whose caller did not come to the end of a statement.
var errPanicked = errors.New("a caller panicked in the middle of a statement")

// answerTime is how long a borrower waits for an answer before the session's goroutine does.
const answerTime = time.Millisecond

// endLoan gives the borrowed connection back after b ended with err.
func (s *session[K]) endLoan(b *batch[K], err error) {
	late := errors.Is(err, ErrLate)
	if err != nil && !late {
		s.end(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lent, s.waiting = false, time.Now()
	if late {
		b.ctx, s.late = nil, b
	}
	if late || len(s.queue) > 0 || s.quiet || s.stopped || s.err != nil {
		s.ring()
	}
}
