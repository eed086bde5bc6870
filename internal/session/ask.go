package session

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/sqllock/sqllock"
)

// Ask asks the server by f, which may use the connection as it likes, and may go on after ctx has ended. It uses a
// session that holds nothing, so that a slow answer costs no lock, unless the Locker may have no more sessions.
func Ask[K comparable, T any](
	ctx context.Context, l *Locker[K], op, name string, f func(context.Context, Conn[K]) (T, error),
) (T, error) {
	answer, err := ask(ctx, &l.pool, true, f)
	if err != nil {
		err = &sqllock.OpError{Op: op, Name: name, Err: err}
	}
	return answer, err
}

// ask calls f on a session that holds nothing, if dedicated is set and there can be one, or else on a shared session.
// If that ends, ask calls f on another one.
func ask[K comparable, T any](
	ctx context.Context, p *pool[K], dedicated bool, f func(context.Context, Conn[K]) (T, error),
) (none T, err error) {
	if err := p.ended(ctx); err != nil {
		return none, err
	}
	var r retry
	for {
		var s *session[K]
		var reused bool
		if dedicated {
			s, reused, err = p.dedicatedSession(ctx)
		}
		if dedicated = s != nil; !dedicated && err == nil {
			s, err = p.sessionToAsk(ctx)
		}
		if err != nil {
			return none, err
		}
		c := &call[K]{idle: func() { p.park(s) }}
		var answer T
		c.work = func(ctx context.Context) error {
			if answer, c.refused = f(ctx, s.conn); c.refused != nil && s.conn.Broken(c.refused) {
				return c.refused
			}
			return nil
		}
		if err = s.do(ctx, c); err == nil { // otherwise answer may still be written to
			p.park(s)
			return answer, c.refused
		}
		var ended *endedError
		switch {
		case !dedicated:
			err = r.after(ctx, err)
		case reused && errors.As(err, &ended) && ended.Retryable():
			err = nil // the session may have ended unnoticed while it was parked
		}
		if err != nil {
			return none, err
		}
	}
}

// sessionToAsk returns a shared session for a question, which needs no room for a lock and no new
// connection.
func (p *pool[K]) sessionToAsk(ctx context.Context) (*session[K], error) {
	for {
		s, err := p.sharedNow(ctx)
		if err == nil || p.ended(ctx) != nil {
			return s, err
		}
		p.mu.Lock()
		if i := slices.IndexFunc(p.shared, func(s *session[K]) bool { return !s.hasEnded() }); i >= 0 {
			s = p.shared[i]
		}
		p.mu.Unlock()
		if s != nil {
			return s, nil
		}
		if !errors.Is(err, errFull) { // else those that were full have ended
			return nil, err
		}
	}
}

// holder asks the server for the holder of a key.
func (p *pool[K]) holder(ctx context.Context, key K) (sqllock.Holder, error) {
	return ask(ctx, p, false, func(ctx context.Context, c Conn[K]) (holder sqllock.Holder, err error) {
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
	return p.has(func(s *session[K]) bool { return s.holds(key) })
}

// has reports whether such is true of one of the sessions.
func (p *pool[K]) has(such func(*session[K]) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.sessions, such)
}
