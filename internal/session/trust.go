package session

import (
	"context"
	"errors"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/clock"
)

// confirm runs work while the session is trusted and, when it succeeded, extends the trust. The
// clock is read again at the end: the process may have been stopped at any point. A session
// that is free promises nothing to anybody, and is trusted anew before its work.
func (s *session[K]) confirm(free bool, work func(until time.Time) error) error {
	sent := clock.Now()
	if free {
		s.trust(sent)
	}
	until, err := s.limit(sent)
	if err != nil {
		return err
	}
	return s.confirmed(sent, until, work)
}

// limit returns until when a statement that is sent at the given time may go on.
func (s *session[K]) limit(sent time.Time) (until time.Time, err error) {
	trusted := s.trustedUntil()
	if !sent.Before(trusted) {
		return until, s.Timing.silence()
	}
	return earlier(trusted, sent.Add(statementTimeout)), nil
}

// confirmed is the rest of confirm, for work that began at the given time.
func (s *session[K]) confirmed(sent, until time.Time, work func(until time.Time) error) error {
	err := work(clock.Plain(until))
	if s.waitContext.Err() != nil {
		return sqllock.ErrClosed
	}
	if err != nil {
		if !clock.Now().Before(until) {
			return s.Timing.silence()
		}
		return err
	}
	s.trust(sent)
	if !s.isTrusted() {
		return s.Timing.silence()
	}
	return nil
}

// work is confirm for what takes a context.
func (s *session[K]) work(free bool, f func(context.Context) error) error {
	return s.confirm(free, func(until time.Time) error {
		ctx, cancel := context.WithDeadline(s.waitContext, until)
		defer cancel()
		return f(ctx)
	})
}

// trust extends the trust in the session after a statement sent at the given time.
func (s *session[K]) trust(sent time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trusted = s.Timing.trust(sent)
}

func (s *session[K]) trustedUntil() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trusted
}

func (s *session[K]) isTrusted() bool { return clock.Now().Before(s.trustedUntil()) }

// expire ends the session at its deadline: a driver that hangs cannot keep the news back. The
// timer is not set anew by every statement, but here.
func (s *session[K]) expire() {
	if !s.isTrusted() {
		s.end(s.Timing.silence())
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

// ping is the heartbeat. The server can answer it with an error that has nothing to do with the session:
// somebody cancelled whatever it was doing. It confirms nothing, costs no lock, and is sent again while what
// the last one said can be relied on.
func (s *session[K]) ping() error {
	s.pinged = time.Now()
	var said error // what the server said instead of an answer
	err := s.work(false, func(ctx context.Context) error {
		err := s.conn.Ping(ctx)
		if err != nil && !s.conn.Broken(err) && !errors.Is(err, sqllock.ErrRefused) {
			said = err
		}
		return err
	})
	switch {
	case err == nil:
		s.checked = s.pinged
		s.Events.Renewed(s.waitContext, time.Since(s.pinged), s.locks())
	case said != nil && errors.Is(err, said) && time.Now().Before(s.Timing.trust(s.checked)):
		s.Events.RenewalFailed(s.waitContext, time.Since(s.pinged), s.locks(), err)
		return nil
	}
	return err
}

// watch waits until a caller comes, the connection dies or may have died, or a heartbeat is due, and sends the
// heartbeat.
func (s *session[K]) watch() error {
	trusted := clock.Plain(s.trustedUntil())
	due := trusted.Add(s.Timing.Heartbeat + s.Timing.margin() - s.Timing.TTL)
	if again := s.pinged.Add(s.Timing.Heartbeat / 8); due.Before(again) { // the last one was answered with an error
		due = earlier(again, trusted)
	}
	ctx, cancel := context.WithDeadline(s.waitContext, due)
	defer cancel()

	s.mu.Lock()
	if len(s.queue) > 0 || s.stopped || s.err != nil {
		s.mu.Unlock()
		return nil
	}
	s.interrupt = cancel
	s.mu.Unlock()

	err := s.conn.Watch(ctx)

	s.mu.Lock()
	s.interrupt = nil
	s.mu.Unlock()
	if doubt := errors.Is(err, ErrDoubt); !doubt && (err != nil || time.Now().Before(due)) {
		return err
	}
	return s.ping()
}
