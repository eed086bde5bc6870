package memory

import (
	"context"
	"slices"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// turn is a session that stands in the server's queue for names, one at a time.
type turn struct {
	server *Server
	name   string        // guarded by the server's mu: the name whose turn the session has, or stands for
	grant  chan struct{} // guarded by the server's mu: has room for one; nil: it does not stand
	over   chan struct{} // closed when the session has ended
}

// OpenTurn implements store.Store.
func (s waitSteps) OpenTurn(ctx context.Context) (store.Turn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, classify(err)
	}
	t := &turn{server: s.Server, over: make(chan struct{})}
	s.sessions[t] = struct{}{}
	return t, nil
}

// Try implements store.Turn.
func (t *turn) Try(ctx context.Context, name string) (bool, error) {
	t.server.mu.Lock()
	defer t.server.mu.Unlock()
	if err := t.usable(ctx); err != nil || len(t.server.turns[name]) > 0 {
		return false, err
	}
	t.stand(name)
	return true, nil
}

// Wait implements store.Turn.
func (t *turn) Wait(ctx context.Context, name string, d time.Duration) (bool, error) {
	t.server.mu.Lock()
	if err := t.usable(ctx); err != nil {
		t.server.mu.Unlock()
		return false, err
	}
	grant := t.stand(name)
	t.server.mu.Unlock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	var err error
	select {
	case <-grant:
		return true, nil
	case <-t.over:
		return false, errRestarted
	case <-ctx.Done():
		err = classify(ctx.Err())
	case <-timer.C:
	}
	t.server.mu.Lock()
	defer t.server.mu.Unlock()
	t.leave()
	return false, err
}

// Ping implements store.Turn.
func (t *turn) Ping(ctx context.Context) error {
	t.server.mu.Lock()
	defer t.server.mu.Unlock()
	return t.usable(ctx)
}

// Leave implements store.Turn.
func (t *turn) Leave(ctx context.Context) error {
	t.server.mu.Lock()
	defer t.server.mu.Unlock()
	if err := t.usable(ctx); err != nil {
		return err
	}
	t.leave()
	return nil
}

// Close implements store.Turn.
func (t *turn) Close() {
	t.server.mu.Lock()
	defer t.server.mu.Unlock()
	t.end()
}

// usable returns why the session cannot be used, or nil. The caller holds the server's mu.
func (t *turn) usable(ctx context.Context) error {
	if _, open := t.server.sessions[t]; !open {
		return errRestarted
	}
	return classify(ctx.Err())
}

// stand queues for the turn of a name. The caller holds the server's mu.
func (t *turn) stand(name string) (grant chan struct{}) {
	t.leave()
	s := t.server
	t.name, t.grant = name, make(chan struct{}, 1)
	s.turns[name] = append(s.turns[name], t)
	if s.turns[name][0] == t {
		t.grant <- struct{}{}
	}
	return t.grant
}

// leave leaves the queue, and gives the turn to the next one. The caller holds the server's mu.
func (t *turn) leave() {
	if t.grant == nil {
		return
	}
	s := t.server
	had := s.turns[t.name][0] == t
	queue := slices.DeleteFunc(s.turns[t.name], func(other *turn) bool { return other == t })
	if s.turns[t.name] = queue; len(queue) == 0 {
		delete(s.turns, t.name)
	} else if had {
		queue[0].grant <- struct{}{}
	}
	t.grant = nil
}

// end ends the session. The caller holds the server's mu.
func (t *turn) end() {
	if _, open := t.server.sessions[t]; open {
		t.leave()
		delete(t.server.sessions, t)
		close(t.over)
	}
}
