package session

import (
	"context"
	"errors"
	"time"

	"github.com/sqllock/sqllock"
)

// parkTime is how long an unused dedicated session is kept for the next wait.
const parkTime = 5 * time.Second

// parked is a dedicated session that is not in use.
type parked[K comparable] struct {
	s     *session[K]
	timer *time.Timer // ends the session after parkTime
}

// fullTime is how long a server that had no connection left is not asked for another one.
const fullTime = time.Second

// dedicatedSession returns a session to wait on: a parked one if there is one, otherwise a new one. It returns nil when
// the Locker may not open any more, or the server has no connection left.
//
// A session is opened under no caller's context: if its caller leaves, it is kept for the next.
func (l *Locker[K]) dedicatedSession(ctx context.Context) (s *session[K], reused bool, err error) {
	l.mu.Lock()
	for n := len(l.parked); n > 0; n = len(l.parked) {
		p := l.parked[n-1]
		l.parked = l.parked[:n-1]
		p.timer.Stop()
		if !p.s.hasEnded() {
			l.mu.Unlock()
			return p.s, true, nil
		}
	}
	if l.dedicated >= l.Limits.dedicated() || time.Now().Before(l.full) {
		l.mu.Unlock()
		return nil, false, nil
	}
	if l.closing.Err() != nil {
		l.mu.Unlock()
		return nil, false, sqllock.ErrClosed
	}
	l.dedicated++
	o := &opening[K]{done: make(chan struct{})}
	left := make(chan struct{})
	l.running.Go(func() { l.openDedicated(o, left) })
	l.mu.Unlock()
	select {
	case o.done <- struct{}{}:
		return o.s, false, o.err
	case <-ctx.Done():
		close(left)
		return nil, false, context.Cause(ctx)
	}
}

// openDedicated opens a dedicated session for a caller that fetches it through o.done, or closes left and leaves.
func (l *Locker[K]) openDedicated(o *opening[K], left chan struct{}) {
	ctx, cancel := context.WithTimeout(l.closing, OpenTimeout)
	defer cancel()
	if o.s, o.err = l.newSession(ctx, l.forgetDedicated); o.err != nil {
		l.mu.Lock()
		l.dedicated--
		if errors.Is(o.err, sqllock.ErrLimit) {
			l.full = time.Now().Add(fullTime)
			o.err = nil
		}
		l.mu.Unlock()
	}
	select {
	case <-o.done:
	case <-left:
		if o.s != nil {
			l.park(o.s)
		}
	}
}

// park keeps a dedicated session, which holds nothing, for the next wait.
func (l *Locker[K]) park(s *session[K]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing.Err() != nil || s.hasEnded() {
		return // it ends or has ended
	}
	p := &parked[K]{s: s}
	p.timer = time.AfterFunc(parkTime, func() { l.unpark(p) })
	l.parked = append(l.parked, p)
}

// unpark ends a session that was parked for parkTime.
func (l *Locker[K]) unpark(p *parked[K]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, other := range l.parked {
		if other == p {
			l.parked = append(l.parked[:i], l.parked[i+1:]...)
			p.s.stop()
			return
		}
	}
}

// setFree is called when a lock on the session was given back to the server, or its session has ended. A dedicated
// session held nothing else and is parked.
func (l *Locker[K]) setFree(s *session[K]) {
	if !l.isShared(s) {
		l.park(s)
	}
}

func (l *Locker[K]) isShared(s *session[K]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, shared := l.shared[s]
	return shared
}

// forgetDedicated drops a dedicated session that has ended.
func (l *Locker[K]) forgetDedicated(s *session[K]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.running.Done()
	delete(l.sessions, s)
	l.dedicated--
}
