package session

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/sqllock/sqllock"
)

// endedError says that the session ended before or while it ran a call. Whatever the call did
// on the server ends with the session.
type endedError struct{ err error }

func (e *endedError) Error() string { return "the session ended: " + e.err.Error() }
func (e *endedError) Unwrap() error { return e.err }

// Retryable implements the question of sqllock.IsRetryable.
func (e *endedError) Retryable() bool { return !errors.Is(e.err, sqllock.ErrClosed) }

// call is work for the goroutine that owns the connection.
type call struct {
	work func(context.Context) error // an error ends the session
	keep func()                      // is run when the caller is given the outcome; may be nil
	undo func(context.Context) error // takes work back for a caller that has left; may be nil
	free bool                        // the session holds nothing: its trust begins anew
	left atomic.Int32                // who was first: the answer or the caller's leaving
	done chan struct{}               // closed when the call was answered
	err  error                       // written before done is closed; an *endedError or nil
}

const (
	answered = 1
	deserted = 2
)

// do runs a call's work on the connection, with a context that ends when the session is no longer
// trusted. When ctx ends first, do returns its cause at once; work may then still run, and
// undo after it. An error of work ends the session, and is returned as an *endedError after
// every lock on the session was told.
func (s *session[K]) do(ctx context.Context, c *call) error {
	c.done = make(chan struct{})
	s.wake()
	select {
	case s.calls <- c:
		s.served()
	case <-s.done:
		s.served()
		return &endedError{s.err} // no longer changes
	case <-ctx.Done():
		s.served()
		return context.Cause(ctx)
	}
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		if c.left.CompareAndSwap(0, deserted) {
			return context.Cause(ctx)
		}
		<-c.done
		return c.err
	}
}

// wake announces a caller and interrupts a watch.
func (s *session[K]) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.callers++
	if s.interrupt != nil {
		s.interrupt()
	}
}

func (s *session[K]) served() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.callers--
}

// answer runs one call and hands over its outcome, unless the caller has left: then the call
// is undone before anything else happens on the connection. What was taken is kept only when
// the caller has it: a lock that nobody has is not one to be told, and its key's turn is the
// caller's to give up.
func (s *session[K]) answer(c *call) error {
	defer close(c.done)
	err := s.confirm(c.free, c.work)
	if err != nil {
		s.tell(err)
		c.err = &endedError{err}
		return err
	}
	if c.left.CompareAndSwap(0, answered) {
		if c.keep != nil {
			c.keep()
		}
		return nil
	}
	if c.undo == nil {
		return nil
	}
	return s.confirm(false, c.undo)
}
