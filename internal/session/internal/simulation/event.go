package simulation

import (
	"fmt"
	"time"

	"github.com/sqllock/sqllock/internal/seeds"
	"github.com/sqllock/sqllock/internal/session/internal/memory"
)

func (e event) String() string {
	text := fmt.Sprintf("after %v: %s", e.at, eventNames[e.kind])
	switch e.kind {
	case stop, cutOff:
		return fmt.Sprintf("%s (process %d of the plan, for %v)", text, e.process+1, e.d)
	case kill, vanish:
		return fmt.Sprintf("%s (process %d of the plan)", text, e.process+1)
	case halfOpen, breakOff:
		return fmt.Sprintf("%s (%s)", text, e.name)
	}
	return fmt.Sprintf("%s (for %v)", text, e.d)
}

// happen has an event happen at its time.
func (w *world) happen(e event) {
	if !seeds.Sleep(w.ctx, e.at) {
		return
	}
	w.log(nil, func() string { return "EVENT " + e.String() })
	p := w.process(e.process)
	switch e.kind {
	case stop:
		w.trouble(p.number)
		p.Stop(w.ctx, e.d)
	case kill, vanish:
		w.replace(e.process, e.kind == vanish)
	case cutOff:
		w.trouble(p.number)
		p.CutOff(e.d)
		seeds.Sleep(w.ctx, e.d)
	case halfOpen, breakOff:
		w.loseHolder(e)
	case restart:
		w.setAway(restart, 1)
		w.server.Restart()
		seeds.Sleep(w.ctx, e.d)
		w.setAway(restart, -1)
	case freeze:
		w.troubleAll()
		w.server.Freeze(e.d)
		seeds.Sleep(w.ctx, e.d)
	case full, standby:
		w.troubleAll()
		w.setAway(e.kind, 1)
		seeds.Sleep(w.ctx, e.d)
		w.setAway(e.kind, -1)
	}
}

// troubleAll notes that an event has met all processes.
func (w *world) troubleAll() {
	for _, p := range w.every(true) {
		w.trouble(p.number)
	}
}

// replace kills a process, and starts another one. If its machine vanishes, too, the server hears nothing.
func (w *world) replace(n int, vanishes bool) {
	next := w.start()
	w.bag.Lock()
	p := w.now[n]
	w.now[n] = next
	w.bag.Unlock()
	p.Kill()
	for _, c := range p.connections() {
		if vanishes {
			c.off.Store(true)
		}
		c.mu.Lock()
		arrives := c.arrives
		c.mu.Unlock()
		w.running.Go(func() {
			if t := w.turn(p, "close", c.name); c.travel(max(t.there, time.Until(arrives)+1)) {
				c.hangUp(t.notice)
			}
		})
	}
}

// loseHolder cuts off or breaks the connection of the session that holds a name.
func (w *world) loseHolder(e event) {
	s, _ := w.server.Holder(e.name)
	if s == nil {
		return
	}
	w.trouble(s.Client)
	if e.kind == breakOff {
		s.End(memory.Broken)
	} else if c := w.connOf(s); c != nil {
		c.off.Store(true)
	}
}
