package simulation

import (
	"context"
	"errors"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/seeds"
	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/session/internal/memory"
)

// wants notes that a user wants a name.
func (p *process) wants(name string) {
	m := p.monitor
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.interest(p.number, name)
	if i.users == i.having {
		i.since = time.Now()
	}
	i.users++
}

// waited notes that a user waits for a name no longer.
func (p *process) waited(name string) {
	m := p.monitor
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.interest(p.number, name)
	i.having++
	i.since = time.Now()
}

// leaves notes that a user neither wants nor has a name any more.
func (p *process) leaves(name string) {
	m := p.monitor
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.interest(p.number, name)
	i.users--
	i.having--
	i.left = time.Now()
}

// interest returns who wants a name. The caller holds mu.
func (m *monitor) interest(process int, name string) *interest {
	i := m.interests[at{process, name}]
	if i == nil {
		i = &interest{left: m.began}
		m.interests[at{process, name}] = i
	}
	return i
}

// failed checks the error of an acquisition that began at a time. The user is still noted as one that wants the name.
func (w *world) failed(ctx context.Context, p *process, l *session.Locker[string], o op, began time.Time, err error) {
	var limit *session.LimitError
	passes := sqllock.IsRetryable(err) && (!errors.As(err, &limit) || limit.OfServer)
	switch alive := ctx.Err() == nil && !p.IsKilled(); {
	case o.kind == acquire && o.within == 0 && alive && passes && w.isClosing(l):
		w.fail("closed", "process %d waited for %s until its Locker was closed, and got another error: %v", p.number, o.name, err)
	case o.kind == acquire && o.within == 0 && alive && passes:
		w.fail("waiting", "process %d waited for %s, and got an error that passes: %v", p.number, o.name, err)
	case o.kind == try && errors.Is(err, sqllock.ErrHeld) && w.plan.prompt():
		w.mustHaveBeenBusy(p, o.name, began)
	}
	if late := time.Since(began) - o.wait; o.wait > 0 && !o.shared && !w.plan.stalls() && late > mostLeave {
		w.fail("I44", "process %d left %v after its context had ended", p.number, late)
	}
}

func (m *monitor) isClosing(l *session.Locker[string]) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed[l]
}

// mostLeave is how long a caller needs to leave.
const mostLeave = 20 * time.Millisecond

// stalls reports whether a goroutine may stall.
func (p *Plan) stalls() bool {
	for _, f := range p.Faults {
		if p.Rate > 0 && (f == stallBefore || f == stallAfter) {
			return true
		}
	}
	for _, e := range p.Events {
		if e.kind == stop {
			return true
		}
	}
	return p.Stalls > 0
}

// mustHaveBeenBusy checks that somebody held a name, or wanted it, at some time since a call began.
func (w *world) mustHaveBeenBusy(p *process, name string, began time.Time) {
	w.server.Locked(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		began = began.Add(-10 * time.Millisecond) // a release may be under way
		for _, key := range []string{name, gate(name)} {
			if since, free := w.server.FreeSince(key); !free || since.After(began) {
				return
			}
		}
		if i := w.interest(p.number, name); i.users == 1 && i.left.Before(began) {
			w.report("held", "process %d was told that %s is held, and it was free", p.number, name)
		}
	})
}

// watcher looks at a history while it goes on.
type watcher struct{ *world }

// look checks again and again what users believe, and what the server has for whom.
func (w watcher) look(ctx context.Context) {
	for seeds.Sleep(ctx, w.plan.TTL/4) {
		w.server.Locked(func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.mustBeTrue()
			if w.plan.prompt() {
				w.mustBeWanted(w.server.Held())
				w.mustBeTaken()
			}
		})
		if w.plan.prompt() {
			for _, p := range w.every(true) {
				p.mustBeFew()
			}
		}
	}
}

// mustBeTrue checks what users believe. The caller holds mu, and the server is locked.
func (w watcher) mustBeTrue() {
	for _, locks := range w.locks {
		for _, h := range locks {
			if h.live() && !h.session.Holds(h.name) && !w.mayBelieve(h) && !w.hasAnother(h) {
				since, reason, _ := h.session.HasEnded()
				w.report("I20, I42", "the user believes that it has %v; its session ended %v ago: %v", h, time.Since(since), reason)
			}
		}
	}
}

// mostUnwanted is for how long a session keeps a key that nobody in its process wants: a slice of a wait has to end.
const mostUnwanted = 2500 * time.Millisecond

// mustBeWanted checks that what a session holds is wanted by somebody in its process. The caller holds mu, and the
// server is locked.
func (w watcher) mustBeWanted(all []memory.Held) {
	for _, k := range all {
		name := keyOf(k.Key)
		i := w.interest(k.Session.Client, name)
		since := i.left
		if g := w.latest(k.Session.Locker, name); g.session == k.Session && g.at.After(since) {
			since = g.at
		}
		if !k.Waits && i.users == 0 && time.Since(since) > mostUnwanted {
			w.report("I43, I44", "process %d keeps %s, which nobody there wants, for %v", k.Session.Client, k.Key, time.Since(since))
		}
	}
}

// mostFree is for how long a name is free that somebody waits for: a wait pauses for up to three seconds after an error.
const mostFree = 5 * time.Second

// mustBeTaken checks that no name is free that somebody waits for. The caller holds mu, and the server is locked.
func (w watcher) mustBeTaken() {
	for a, i := range w.interests {
		since, free := w.server.FreeSince(a.name)
		if i.since.After(since) {
			since = i.since
		}
		if i.users > i.having && free && time.Since(since) > mostFree && !w.plan.away() && !w.isGone(a.process) {
			w.report("waiting", "somebody in process %d has waited for %v for %s, which is free", a.process, time.Since(since), a.name)
		}
	}
}

// mustBeFew checks that a Locker has not opened more connections than it may. One that has ended may be closing.
func (p *process) mustBeFew() {
	p.mu.Lock()
	defer p.mu.Unlock()
	count := 0
	for _, c := range p.conns {
		if c.locker == p.locker {
			count++
		}
	}
	if p.many++; count <= p.plan.Sessions {
		p.many = 0
	}
	if p.many > 2 {
		p.fail("limits", "process %d has %d connections open", p.number, count)
	}
}
