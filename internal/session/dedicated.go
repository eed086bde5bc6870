package session

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sqllock/sqllock"
)

// parkTime is how long an unused session is kept for the next lock or wait. A shared one ends with the next heartbeat.
const parkTime = 5 * time.Second

// parked is a dedicated session that is not in use.
type parked[K comparable] struct {
	s     *session[K]
	timer *time.Timer // ends the session after parkTime
}

// fullTime is how long a server that had no connection left is not asked for another one.
const fullTime = time.Second

// dedicatedSession returns a session to wait on: a parked one if there is one, otherwise a new one (I41). It returns
// nil when the Locker may not open any more, or the server has no connection left.
//
// A session is opened under no caller's context: if its caller leaves, it is kept for the next.
func (p *pool[K]) dedicatedSession(ctx context.Context) (s *session[K], reused bool, err error) {
	p.mu.Lock()
	for n := len(p.parked); n > 0; n = len(p.parked) {
		idle := p.parked[n-1]
		p.parked = p.parked[:n-1]
		idle.timer.Stop()
		if !idle.s.hasEnded() {
			p.mu.Unlock()
			return idle.s, true, nil
		}
	}
	if p.dedicated >= p.Limits.dedicated() || time.Now().Before(p.full) {
		p.mu.Unlock()
		return nil, false, nil
	}
	if p.closing.Err() != nil {
		p.mu.Unlock()
		return nil, false, sqllock.ErrClosed
	}
	p.dedicated++
	o := &opening[K]{done: make(chan struct{})}
	left := make(chan struct{})
	p.running.Go(func() { p.openDedicated(o, left) })
	p.mu.Unlock()
	select {
	case o.done <- struct{}{}:
		return o.s, false, o.err
	case <-ctx.Done():
		close(left)
		return nil, false, context.Cause(ctx)
	}
}

// openDedicated opens a dedicated session for a caller that fetches it through o.done, or closes left and leaves.
func (p *pool[K]) openDedicated(o *opening[K], left chan struct{}) {
	ctx, cancel := withOpenTimeout(p.closing)
	defer cancel()
	if o.s, o.err = p.newSession(ctx, true); o.err != nil {
		p.mu.Lock()
		p.dedicated--
		if errors.Is(o.err, sqllock.ErrLimit) {
			p.full = time.Now().Add(fullTime)
			o.err = nil
		}
		p.mu.Unlock()
	}
	select {
	case <-o.done:
	case <-left:
		if o.s != nil {
			p.park(o.s)
		}
	}
}

// park keeps a dedicated session, which holds nothing, for the next wait. A shared one needs no parking.
func (p *pool[K]) park(s *session[K]) {
	if !s.dedicated {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing.Err() != nil || s.hasEnded() {
		return // it ends or has ended
	}
	idle := &parked[K]{s: s}
	idle.timer = time.AfterFunc(parkTime, func() { p.unpark(idle) })
	p.parked = append(p.parked, idle)
}

// unpark ends a session that was parked for parkTime.
func (p *pool[K]) unpark(idle *parked[K]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.parked, idle); i >= 0 {
		p.parked = slices.Delete(p.parked, i, i+1)
		idle.s.stop()
	}
}

// hasParked reports whether there is a session to wait on at once.
func (p *pool[K]) hasParked() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.parked) > 0
}
