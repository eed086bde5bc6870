package session

import (
	"context"
	"errors"
	"os"

	"github.com/sqllock/sqllock"
)

// Ask asks the server by f, which may use the connection as it likes, and may go on after ctx has ended. It uses a
// session that holds nothing, so that a slow answer costs no lock, unless the Locker may have no more sessions.
func Ask[K comparable, T any](
	ctx context.Context, l *Locker[K], op, name string, f func(context.Context, Conn[K]) (T, error),
) (T, error) {
	answer, err := ask(ctx, &l.pool, l.onDedicated, f)
	if err != nil {
		err = &sqllock.OpError{Op: op, Name: name, Err: err}
	}
	return answer, err
}

// ask calls f on a session that on chooses, and on another one when that ends. It returns the last answer.
func ask[K comparable, T any](
	ctx context.Context, p *pool[K],
	on func(context.Context, func(*session[K], func()) error) error, f func(context.Context, Conn[K]) (T, error),
) (answer T, err error) {
	if err := p.ended(ctx); err != nil {
		return answer, err
	}
	err = on(ctx, func(s *session[K], idle func()) error {
		c := &call[K]{idle: idle}
		var got T
		c.work = func(ctx context.Context) error {
			if got, c.refused = f(ctx, s.conn); c.refused != nil && s.conn.Broken(c.refused) {
				return c.refused
			}
			return nil
		}
		if err := s.do(ctx, c); err != nil { // got may still be written to
			return err
		}
		idle()
		answer = got
		return c.refused
	})
	return answer, err
}

// onDedicated calls f with a session that holds nothing, or with a shared one if there can be no such session. f calls
// idle when it no longer uses the session.
func (p *pool[K]) onDedicated(ctx context.Context, f func(s *session[K], idle func()) error) error {
	for {
		s, reused, err := p.dedicatedSession(ctx)
		if err != nil {
			return err
		}
		if s == nil {
			return p.onShared(ctx, f)
		}
		err = f(s, func() { p.park(s) })
		var ended *endedError
		if !reused || !errors.As(err, &ended) || !ended.Retryable() {
			return err // otherwise the session may have ended unnoticed while it was parked
		}
	}
}

// onShared calls f with a shared session, and with another one if that ends.
func (p *pool[K]) onShared(ctx context.Context, f func(s *session[K], idle func()) error) error {
	var r retry
	for {
		s, err := p.sharedSession(ctx)
		if err != nil {
			return err
		}
		if err = f(s, func() {}); err == nil {
			return nil
		}
		if err := r.after(ctx, err); err != nil {
			return err
		}
	}
}

// holder asks the server for the holder of a key.
func (p *pool[K]) holder(ctx context.Context, key K) (sqllock.Holder, error) {
	return ask(ctx, p, p.onShared, func(ctx context.Context, c Conn[K]) (holder sqllock.Holder, err error) {
		holder, _, err = c.Holder(ctx, key)
		return holder, err
	})
}

// heldHere returns the error for a lock whose wait queue has a head in this process: one of its goroutines holds the
// lock or is waiting for it.
func (p *pool[K]) heldHere(w Want[K]) *sqllock.HeldError {
	held := &sqllock.HeldError{Name: w.Name}
	if p.holds(w.Key) {
		held.Holder = sqllock.Holder{Owner: p.Owner, PID: os.Getpid()}
	}
	return held
}

// holds reports whether a session of this Locker holds key.
func (p *pool[K]) holds(key K) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.sessions {
		if s.holds(key) {
			return true
		}
	}
	return false
}
