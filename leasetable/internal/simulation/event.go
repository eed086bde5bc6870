package simulation

import (
	"context"
	"fmt"
	"time"

	"github.com/sqllock/sqllock/internal/seeds"
)

func (e event) String() string {
	text := fmt.Sprintf("after %v: %s", e.at, eventNames[e.kind])
	switch e.kind {
	case stop, cutOff:
		return fmt.Sprintf("%s (process %d, for %v)", text, e.process+1, e.d)
	case kill:
		return fmt.Sprintf("%s (process %d)", text, e.process+1)
	case lockRow:
		return fmt.Sprintf("%s (%s, for %v)", text, e.name, e.d)
	case force:
		return fmt.Sprintf("%s (%s)", text, e.name)
	case purge:
		return text
	}
	return fmt.Sprintf("%s (%v)", text, e.d)
}

// happen has an event happen at its time.
func (w *world) happen(e event) {
	if !seeds.Sleep(w.ctx, e.at) {
		return
	}
	p := w.processes[e.process]
	w.log(nil, func() string { return "EVENT " + e.String() })
	switch e.kind {
	case stop:
		p.Stop(w.ctx, e.d)
	case kill:
		p.Kill()
	case cutOff:
		p.CutOff(e.d)
		seeds.Sleep(w.ctx, e.d)
	case restart:
		w.restart(e.d, w.server.Restart)
	case crash:
		select {
		case <-w.freed:
			w.restart(e.d/8, w.server.Restart)
		case <-time.After(w.plan.TTL):
		}
	case failover:
		w.declare(true)
		w.restart(e.d/8, func() { w.server.Failover(e.d) })
	case lockRow:
		w.keepLocked(e.name, e.d)
	case force:
		w.forceRelease(p, e.name)
	case purge:
		ctx, cancel := context.WithTimeout(w.ctx, actTime)
		defer cancel()
		_, _ = p.current().Purge(ctx, e.d) // a fault may meet it
	case clockBack:
		w.server.SetClock(-e.d)
	case clockAhead:
		w.declare(false)
		w.server.SetClock(e.d)
	}
}

// restart restarts the server, which is away for some time.
func (w *world) restart(away time.Duration, how func()) {
	w.undo()
	w.down.Store(true)
	w.epoch.Add(1)
	how()
	for _, p := range w.processes {
		p.store.Reconnect()
	}
	seeds.Sleep(w.ctx, away)
	w.down.Store(false)
}

// keepLocked keeps the row of a name locked by a transaction.
func (w *world) keepLocked(name string, d time.Duration) {
	ctx, cancel := context.WithTimeout(w.ctx, actTime)
	defer cancel()
	tx := w.server.Begin()
	if tx.Lock(ctx, name) == nil {
		seeds.Sleep(w.ctx, d)
	}
	_ = tx.Rollback(ctx) // nothing was written
}

func (w *world) forceRelease(p *process, name string) {
	ctx, cancel := context.WithTimeout(w.ctx, actTime)
	defer cancel()
	was, err := p.current().ForceRelease(ctx, name)
	if now, readErr := w.server.Store().Read(w.ctx, name); err == nil && readErr == nil && was.Held && now.Token <= was.Token && !w.hasFailed() {
		w.fail("I12", "%s had token %d, was released by force, and has token %d", name, was.Token, now.Token)
	}
	w.log(p, func() string { return fmt.Sprintf("releases %s by force (token %d): %v", name, was.Token, said(err)) })
}
