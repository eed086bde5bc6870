package session

import (
	"context"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/clock"
)

// confirm runs work while the session is trusted and extends the trust if work succeeds. It reads the clock again at
// the end: the process may have been stopped at any point. A free session holds nothing that could be lost, so it is
// trusted anew before its work.
func (s *session[K]) confirm(free bool, work func(until time.Time) error) error {
	sent := clock.Now()
	if free {
		s.setBrief(false) // what this did not end, the work begins anew
		s.trust(sent)
	}
	until, err := s.limit(sent)
	if err != nil {
		return err
	}
	return s.confirmed(sent, until, work(clock.Plain(until)))
}

// limit returns until when a statement that is sent at the given time may run.
func (s *session[K]) limit(sent time.Time) (until time.Time, err error) {
	trusted := s.trustedUntil()
	if !sent.Before(trusted) {
		return until, s.silence()
	}
	return earlier(trusted, sent.Add(statementTimeout)), nil
}

// confirmed is the rest of confirm, for work that was sent at the given time and has ended with err (I3, I4, I42).
func (s *session[K]) confirmed(sent, until time.Time, err error) error {
	if s.waitContext.Err() != nil {
		return sqllock.ErrClosed
	}
	if err != nil {
		if !clock.Now().Before(until) {
			return s.silence()
		}
		return err
	}
	s.trust(sent)
	if !s.isTrusted() {
		return s.silence()
	}
	return nil
}

// work is confirm for a function that takes a context.
func (s *session[K]) work(free bool, f func(context.Context) error) error {
	return s.confirm(free, func(until time.Time) error {
		ctx, cancel := context.WithDeadline(s.waitContext, until)
		defer cancel()
		return f(ctx)
	})
}

// trust extends the trust in the session after a statement sent at the given time.
func (s *state[K]) trust(sent time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	timing := s.Timing
	if s.brief {
		timing = s.Timing.whileWaiting()
	}
	s.trusted = timing.trust(sent)
	if s.brief && s.err == nil {
		s.deadline.Reset(s.trusted) // it may be set to a later time
	}
}

// silence is the cause of the end of a session that has not been confirmed in time.
func (s *state[K]) silence() error {
	if s.isBrief() {
		return s.Timing.whileWaiting().silence()
	}
	return s.Timing.silence()
}

// remaining returns how long the server is certain to keep the session without another answer, and whether it holds a
// lock.
func (s *state[K]) remaining() (left time.Duration, held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	until := s.trusted
	if s.brief { // Keep is on its way: that it is missing is no stall
		until = until.Add(s.Timing.trust(until).Sub(s.Timing.whileWaiting().trust(until)))
	}
	return max(0, clock.Until(until)), len(s.held) > 0
}

func (s *state[K]) trustedUntil() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trusted
}

// isTrusted reports whether the server is sure to keep the session at this moment (I5).
func (s *state[K]) isTrusted() bool { return clock.Now().Before(s.trustedUntil()) }

// expire ends the session at its deadline, even while a driver hangs. The timer is reset here, not by every statement.
func (s *session[K]) expire() {
	if !s.isTrusted() {
		s.end(s.silence())
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.deadline.Reset(s.trusted)
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
