package session

import (
	"context"
	"errors"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/bound"
	"github.com/sqllock/sqllock/internal/clock"
)

// OpenTimeout bounds the opening of a session, whatever its caller's context does.
const OpenTimeout = 15 * time.Second

// opening is the opening of a session.
type opening[K comparable] struct {
	done chan struct{}
	s    *session[K] // written before done is closed or received from, as is err
	err  error
}

// retry is the state of a request to shared sessions.
type retry struct{ again bool }

// after returns nil if a request whose session ended with err is to be sent on another session: what it did on the old
// one ended with that. It is sent once more, but a session that another caller cut off does not count.
func (r *retry) after(ctx context.Context, err error) error {
	var ended *endedError
	cut := errors.Is(err, errCut)
	switch {
	case !errors.As(err, &ended):
		return err
	case ctx.Err() != nil && cut:
		return context.Cause(ctx)
	case ctx.Err() != nil:
		return bound.WithCause(context.Cause(ctx), err)
	case r.again && !cut:
		return err
	}
	r.again = r.again || !cut
	return nil
}

// sharedSession returns the session to try on. Callers that come while it is being opened wait for the same one. It is
// opened under no caller's context.
func (l *Locker[K]) sharedSession(ctx context.Context) (*session[K], error) {
	l.mu.Lock()
	s, err := l.choose()
	if s != nil || err != nil {
		l.mu.Unlock()
		return s, err
	}
	o := l.opening
	if o == nil {
		if l.closing.Err() != nil {
			l.mu.Unlock()
			return nil, sqllock.ErrClosed
		}
		o = &opening[K]{done: make(chan struct{})}
		l.opening = o
		l.running.Go(func() { l.openShared(o) })
	}
	l.mu.Unlock()
	select {
	case <-o.done:
		if o.err != nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			if s, _ := l.leastLoaded(); s != nil {
				return s, nil
			}
		}
		return o.s, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// choose returns a shared session with room for a lock: the front one while it has room, then the one with the fewest
// locks. It returns nil when a new one is to be opened. A server answers more slowly the more locks a session holds.
// The caller holds mu.
func (l *Locker[K]) choose() (*session[K], error) {
	if s := l.front; s != nil && !s.hasEnded() && s.load() < l.Limits.Locks {
		return s, nil
	}
	var least int
	l.front, least = l.leastLoaded()
	switch {
	case l.front != nil && (least <= l.Limits.Locks/2 || len(l.shared) >= l.Limits.shared()):
		return l.front, nil
	case len(l.shared) >= l.Limits.shared() && l.opening == nil && l.front == nil && l.alive():
		return nil, l.Limits.full()
	}
	l.front = nil
	return nil, nil
}

// leastLoaded returns the shared session with the fewest locks, if one has room, and the number of its locks. The
// caller holds mu.
func (l *Locker[K]) leastLoaded() (least *session[K], locks int) {
	locks = l.Limits.Locks
	for s := range l.shared {
		if n := s.load(); n < locks && !s.hasEnded() {
			least, locks = s, n
		}
	}
	return least, locks
}

// alive reports whether every shared session is alive. The caller holds mu.
func (l *Locker[K]) alive() bool {
	for s := range l.shared {
		if s.hasEnded() {
			return false
		}
	}
	return true
}

func (l *Locker[K]) openShared(o *opening[K]) {
	defer close(o.done)
	ctx, cancel := context.WithTimeout(l.closing, OpenTimeout)
	defer cancel()
	o.s, o.err = l.newSession(ctx, l.forget)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.opening = nil
	if _, lives := l.sessions[o.s]; o.err == nil && lives {
		l.front = o.s
		l.shared[o.s] = struct{}{}
	}
}

// newSession opens a connection and starts its session. Close waits for it from the beginning, also while the
// connection is not open yet.
func (l *Locker[K]) newSession(ctx context.Context, ended func(*session[K])) (_ *session[K], err error) {
	l.mu.Lock()
	if l.closing.Err() != nil {
		l.mu.Unlock()
		return nil, sqllock.ErrClosed
	}
	l.running.Add(1) // the function ended takes it back
	l.mu.Unlock()
	defer func() {
		if err != nil {
			l.running.Done()
		}
	}()

	conn, err := l.Open(ctx)
	if err != nil {
		return nil, withCause(ctx, err)
	}
	sent := clock.Now() // the trust in the session begins here
	if err := conn.Ping(ctx); err != nil {
		if conn.Broken(err) && !errors.Is(err, sqllock.ErrRefused) {
			err = &UnavailableError{Err: err}
		}
		conn.Close()
		return nil, withCause(ctx, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := start(conn, l.Config, sent, ended)
	l.sessions[s] = struct{}{}
	if l.closing.Err() != nil {
		s.stop()
	}
	return s, nil
}

// withCause adds to a driver's error why ctx ended, if it has: the driver does not say.
func withCause(ctx context.Context, err error) error {
	if !bound.Ended(ctx) {
		return err
	}
	return errors.Join(context.Cause(ctx), err)
}

// forget drops a shared session that has ended.
func (l *Locker[K]) forget(s *session[K]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.running.Done()
	delete(l.sessions, s)
	delete(l.shared, s)
}
