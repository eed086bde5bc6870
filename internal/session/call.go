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

// Retryable implements the question of sqllock.IsRetryable.
func (e *endedError) Retryable() bool { return !errors.Is(e.err, sqllock.ErrClosed) }

// call is something for the goroutine that owns the connection to do: op, together with the
// ops of other calls, or work, alone.
type call[K comparable] struct {
	op   Op[K]
	work func(context.Context) error // an error ends the session; a key that it took is in op
	lock *lock[K]                    // is recorded when the caller is told that op took its key; may be nil
	free bool                        // the session holds nothing: its trust begins anew
	undo func(context.Context) error // is called when the caller has left, instead of giving the key back; may be nil
	idle func()                      // is called when the caller has left and everything was taken back; may be nil

	left    atomic.Int32  // who was first: the answer or the caller's leaving
	done    chan struct{} // closed when the call was answered
	err     error         // written before done is closed: an *endedError or nil
	refused error         // written before done is closed: what the server said instead of an answer
}

const (
	answered = 1
	deserted = 2
)

// do has the session run calls, the last of them for a caller who may leave: when ctx ends
// first, do returns its cause at once. What that call does after all is then taken back. An
// error of the session is returned as an *endedError after every lock on the session was told.
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

// enqueue has the session's goroutine run calls, or, when that has nothing to do, their caller: then
// it returns what to run.
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

// mayLend reports whether a caller may have the connection for one statement. It spares two
// changes of goroutines, which cost as much as a tenth of it. One who may leave needs a connection
// that somebody else can go on with, or that holds nothing, and can be closed. Many callers get
// more from one statement for all. The caller has mu.
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

// cutTime is how close a deadline is that may well end a statement, and the session with it.
const cutTime = 100 * time.Millisecond

// errCut is the error of a session whose caller left in the middle of a statement.
var errCut = errors.New("the caller who ran a statement left")

// answerTime is how long a caller waits for an answer before the session's goroutine does.
const answerTime = time.Millisecond

// runHere runs b for its caller, who has the connection, and gives the connection back.
func (s *session[K]) runHere(b *batch[K]) {
	err := errors.New("a caller panicked in the middle of a statement")
	defer func() { s.endLoan(b, err) }()
	err = s.run(b)
}

// endLoan ends the loan of the connection after b came to err.
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
