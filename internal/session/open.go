package session

import (
	"context"
	"errors"
	"time"

	"github.com/sqllock/sqllock"
)

// onShared calls f with the shared session, opening it if need be. When the session ends
// instead, f is called once more with a new one: what it did on the old one ends with that.
func (l *Locker[K]) onShared(ctx context.Context, f func(*session[K]) error) error {
	for again := false; ; again = true {
		s, err := l.sharedSession(ctx)
		if err != nil {
			return err
		}
		err = f(s)
		var ended *endedError
		if again || !errors.As(err, &ended) || ctx.Err() != nil {
			return err
		}
	}
}

// sharedSession returns the shared session. Callers that come while it is being opened wait
// for the same one; it is opened under no caller's context.
func (l *Locker[K]) sharedSession(ctx context.Context) (*session[K], error) {
	l.mu.Lock()
	if s := l.shared; s != nil && !s.hasEnded() {
		l.mu.Unlock()
		return s, nil
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
		return o.s, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (l *Locker[K]) openShared(o *opening[K]) {
	defer close(o.done)
	ctx, cancel := context.WithTimeout(l.closing, openTimeout)
	defer cancel()
	o.s, o.err = l.newSession(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.opening = nil
	if o.err == nil {
		l.shared = o.s
	}
}

func (l *Locker[K]) isShared(s *session[K]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shared == s
}

// newSession opens a connection and starts its session. Close waits for it from the beginning:
// until then the caller's context may not have ended, and the connection not be open.
func (l *Locker[K]) newSession(ctx context.Context) (_ *session[K], err error) {
	l.mu.Lock()
	if l.closing.Err() != nil {
		l.mu.Unlock()
		return nil, sqllock.ErrClosed
	}
	l.running.Add(1) // forget takes it back
	l.mu.Unlock()
	defer func() {
		if err != nil {
			l.running.Done()
		}
	}()

	conn, err := l.open(ctx)
	if err != nil {
		return nil, withCause(ctx, err)
	}
	sent := time.Now() // the trust in the session counts from here
	if err := conn.Ping(ctx); err != nil {
		conn.Close()
		return nil, withCause(ctx, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := start(conn, l.timing, sent, l.forget)
	l.sessions[s] = struct{}{}
	if l.closing.Err() != nil {
		s.stop()
	}
	return s, nil
}

// withCause adds why ctx ended, if it has, to the error of a driver, which does not say.
func withCause(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return errors.Join(context.Cause(ctx), err)
}

// forget drops a session that has ended.
func (l *Locker[K]) forget(s *session[K]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.running.Done()
	delete(l.sessions, s)
	if l.shared == s {
		l.shared = nil
	}
}
