package session

import (
	"context"
	"time"

	"github.com/sqllock/sqllock/internal/clock"
)

// keepSoon is called after a wait that was sent at the given time has taken its key. The server keeps the session as one
// that waits until Keep. If there is time for that, the session calls it when no other call has come for a moment. So the
// caller need not wait for the answer: until then the session is trusted briefly (I3).
func (s *session[K]) keepSoon(ctx context.Context, sent time.Time) error {
	if clock.Since(sent) > s.Timing.Waiting/3 { // Keep may take as long, on a far network
		return s.keeper.Keep(ctx)
	}
	s.setBrief(true)
	return nil
}

// keepAndWatch has the server keep the session for its TTL again, if it does not, and watches the connection.
func (s *session[K]) keepAndWatch() error {
	if s.isBrief() {
		if err := s.work(false, s.keepOn); err != nil {
			return err
		}
	}
	return s.watch()
}

// keepOn has the server keep the session for its TTL. An error that has nothing to do with the session, as when somebody
// cancelled the statement, costs no lock.
func (s *session[K]) keepOn(ctx context.Context) error {
	for {
		err := s.keeper.Keep(ctx)
		if err == nil {
			s.setBrief(false)
			return nil
		}
		if s.conn.Broken(err) {
			return err
		}
		select {
		case <-time.After(linger):
		case <-ctx.Done():
			return err
		}
	}
}

func (s *state[K]) isBrief() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.brief
}

func (s *state[K]) setBrief(brief bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.brief = brief
}
