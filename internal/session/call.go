package session

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock"
)

// endedError says that the session ended before or while it ran a call. Whatever the call did
// on the server ends with the session.
type endedError struct{ err error }

func (e *endedError) Error() string { return "the session ended: " + e.err.Error() }
func (e *endedError) Unwrap() error { return e.err }

// Retryable answers sqllock.IsRetryable.
func (e *endedError) Retryable() bool { return !errors.Is(e.err, sqllock.ErrClosed) }

// call is a request to the goroutine that owns the connection: op, which runs together with the ops of other calls, or
// work, which runs alone.
type call[K comparable] struct {
	op   Op[K]
	work func(context.Context) error // an error ends the session; a key that it takes is in op
	lock *lock[K]                    // recorded when the caller is answered that op took its key; may be nil
	free bool                        // the session holds nothing: its trust begins anew
	undo func(context.Context) error // called when the caller has left, instead of giving the key back; may be nil
	idle func()                      // called when the caller has left and everything was taken back; may be nil

	left    atomic.Int32  // answered or deserted, whichever came first
	done    chan struct{} // closed when the call was answered
	err     error         // written before done is closed: an *endedError or nil
	refused error         // written before done is closed: the server's error instead of an answer
}

const (
	answered = 1
	deserted = 2
)

// do has the session run calls. The caller may leave during the last of them: when ctx ends first, do returns its cause
// at once, and what that call does after all is taken back. If the session ends, do returns an *endedError, after every
// lock on the session has ended.
func (s *session[K]) do(ctx context.Context, calls ...*call[K]) error {
	for _, c := range calls {
		c.done = make(chan struct{})
	}
	b, err := s.enqueue(ctx, calls)
	if err != nil {
		return &endedError{err}
	}
	c := calls[len(calls)-1]
	if b != nil {
		s.runHere(b)
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		if c.left.CompareAndSwap(0, deserted) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.pending--
			return context.Cause(ctx)
		}
		<-c.done
	}
	return c.err
}

// enqueue has the session's goroutine run calls. If that is idle and the caller may borrow the connection, it returns
// the batch for the caller to run.
func (s *session[K]) enqueue(ctx context.Context, calls []*call[K]) (*batch[K], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	lend := calls[0].work == nil && s.mayLend(ctx)
	s.pending += len(calls)
	if lend {
		s.lent = true
		return &batch[K]{calls: calls, ctx: ctx}, nil
	}
	s.queue = append(s.queue, calls...)
	if s.interrupt != nil {
		s.interrupt()
	}
	s.ring()
	return nil, nil
}

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

// answerTime is how long a borrower waits for an answer before the session's goroutine does.
const answerTime = time.Millisecond

// runHere runs b for its caller, which has borrowed the connection, and gives the connection back.
func (s *session[K]) runHere(b *batch[K]) {
	err := errors.New("a caller panicked in the middle of a statement")
	defer func() { s.endLoan(b, err) }()
	err = s.run(b)
}

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
