package memory

import (
	"context"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// NoteWaiter implements store.Waits.
func (s waits) NoteWaiter(ctx context.Context, name string, since int64, within time.Duration) (noted bool, err error) {
	held := func(r lockRow) bool { return r.lease != "" }
	err = s.run(ctx, func(t *Tx) error {
		if r, there := s.locks[name]; !there || !held(r) {
			return nil
		}
		noted = t.changeUnlocked(name, held, func(r *lockRow) {
			now := t.now()
			if !r.hasWaiter(now) || since < r.waiterSince {
				r.waiterSince = since
			}
			r.waiterUntil = now + within.Microseconds()
		})
		return nil
	})
	return noted, err
}

// RemoveWaiter implements store.Waits.
func (s waits) RemoveWaiter(ctx context.Context, name string, since int64) error {
	noted := func(r lockRow) bool { return r.waiterSince == since }
	return s.run(ctx, func(t *Tx) error {
		if r, there := s.locks[name]; there && noted(r) {
			t.changeUnlocked(name, noted, func(r *lockRow) { r.waiterUntil = 0 })
		}
		return nil
	})
}

// NoteExclusiveWaiter implements store.Waits.
func (s waits) NoteExclusiveWaiter(ctx context.Context, name string, us any) error {
	return s.run(ctx, func(t *Tx) error {
		_, err := t.change(ctx, name, func(r lockRow) bool { return r.limited }, func(r *lockRow) {
			r.exclusiveUntil = 0
			if us != nil {
				r.exclusiveUntil = t.now() + us.(int64)
			}
		})
		return err
	})
}

// notification is what a release tells waiters.
type notification struct {
	name  string
	since int64
}

// subscription receives notifications.
type subscription struct {
	server *Server
	heard  []notification // guarded by the server's mu
	more   chan struct{}  // has room for one: something was heard, or the subscription has ended
	ended  bool           // guarded by the server's mu
}

// Subscribe implements store.Waits.
func (s waits) Subscribe(ctx context.Context) (store.Subscription, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, classify(err)
	}
	h := &subscription{server: s.Server, more: make(chan struct{}, 1)}
	s.hearers[h] = struct{}{}
	h.hear(notification{}) // its own
	return h, nil
}

// notify sends a notification to all who listen. The caller holds mu.
func (s *Server) notify(n notification) {
	for h := range s.hearers {
		h.hear(n)
	}
}

func (h *subscription) hear(n notification) {
	h.heard = append(h.heard, n)
	h.wake()
}

func (h *subscription) wake() {
	select {
	case h.more <- struct{}{}:
	default:
	}
}

// end ends the subscription: its connection has ended. The caller holds the server's mu.
func (h *subscription) end() {
	h.ended = true
	h.wake()
}

// Next implements store.Subscription.
func (h *subscription) Next(ctx context.Context) (name string, since int64, err error) {
	for {
		h.server.mu.Lock()
		if len(h.heard) > 0 {
			n := h.heard[0]
			h.heard = h.heard[1:]
			h.server.mu.Unlock()
			return n.name, n.since, nil
		}
		ended := h.ended
		h.server.mu.Unlock()
		if ended {
			return "", 0, errRestarted
		}
		select {
		case <-h.more:
		case <-ctx.Done():
			return "", 0, ctx.Err()
		}
	}
}

// Close implements store.Subscription.
func (h *subscription) Close() {
	h.server.mu.Lock()
	defer h.server.mu.Unlock()
	delete(h.server.hearers, h)
}
