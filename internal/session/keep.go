package session

import (
	"context"
	"errors"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/backoff"
	"github.com/sqllock/sqllock/internal/clock"
)

// heartbeat keeps a session alive, between its calls and after a wait. Only the session's goroutine uses it.
type heartbeat[K comparable] struct{ *session[K] }

// keepSoon is called after a wait that was sent at the given time has taken its key. The server keeps the session as one
// that waits until Keep. If there is time for that, the session calls it when no other call has come for a moment. So the
// caller need not wait for the answer: until then the session is trusted briefly (I3).
func (s heartbeat[K]) keepSoon(ctx context.Context, sent time.Time) error {
	if clock.Since(sent) > s.Timing.Waiting/3 { // Keep may take as long, on a far network
		return s.keeper.Keep(ctx)
	}
	s.setBrief(true)
	return nil
}

// keepAndWatch has the server keep the session for its TTL again, if it does not, and watches the connection.
func (s heartbeat[K]) keepAndWatch() error {
	if s.isBrief() {
		if err := s.work(false, s.keepOn); err != nil {
			return err
		}
	}
	return s.watch()
}

// keepOn has the server keep the session for its TTL. An error that has nothing to do with the session, as when somebody
// cancelled the statement, costs no lock.
func (s heartbeat[K]) keepOn(ctx context.Context) error {
	for {
		err := s.keeper.Keep(ctx)
		if err == nil {
			s.setBrief(false)
			return nil
		}
		if s.conn.Broken(err) {
			return err
		}
		if backoff.Sleep(ctx, watchAfter) != nil {
			return err
		}
	}
}

// ping sends the heartbeat. The server can answer it with an error that has nothing to do with the session, as when
// somebody cancelled the statement. Such an answer confirms nothing and costs no lock. The heartbeat is then sent again
// while the last confirmed one can be relied on.
func (s heartbeat[K]) ping() error {
	s.pinged = time.Now()
	var said error // the server's error instead of an answer
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
		if !s.isStopped() {
			s.Events.RenewalFailed(s.waitContext, time.Since(s.pinged), s.locks(), err)
		}
		return nil
	}
	return err
}

// watch waits until a caller comes, the connection dies or may have died, or a heartbeat is due. In the last two cases
// it sends the heartbeat, unless nobody needs the session any more.
func (s heartbeat[K]) watch() error {
	trusted := clock.Plain(s.trustedUntil())
	due := trusted.Add(s.Timing.Heartbeat + s.Timing.margin() - s.Timing.TTL)
	// The last heartbeat was answered with an error, or was a long slice of a wait.
	if again := s.pinged.Add(s.Timing.Heartbeat / 8); due.Before(again) {
		due = earlier(again, trusted)
	}
	ctx, cancel := context.WithCancel(s.waitContext)
	defer cancel()
	until := clock.Now().Add(time.Until(due)) // the machine may be suspended meanwhile
	timer := clock.AfterFunc(until, cancel)
	defer timer.Stop()

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
	if doubt := errors.Is(err, ErrDoubt); !doubt && (err != nil || clock.Now().Before(until)) {
		return err
	}
	if s.endUnused() {
		return errUnused
	}
	return s.ping()
}

func (s heartbeat[K]) isStopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped
}

func (t *trust) isBrief() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.brief
}

func (t *trust) setBrief(brief bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.brief = brief
}
