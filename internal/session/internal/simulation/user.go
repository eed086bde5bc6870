package simulation

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/seeds"
	"github.com/sqllock/sqllock/internal/session"
)

// actTime is the deadline of a question.
const actTime = 5 * time.Second

// run does what a user does, one op after the other.
func (u user) run(w *world) {
	for _, o := range u.ops {
		p := w.process(u.process)
		if !seeds.Sleep(p.Alive, o.pause) || !p.Pause() {
			continue
		}
		p.ops.Add(1)
		switch o.kind {
		case reopen:
			p.reopen()
		case ask:
			p.inspect(o.name)
		case terminate:
			p.terminate(o.name)
		default:
			p.use(o)
		}
	}
}

// reopen closes the Locker of the process, and opens another one.
func (p *process) reopen() {
	p.mu.Lock()
	old := p.locker
	p.locker = p.open()
	p.mu.Unlock()
	p.closeLocker(old)
}

func (p *process) closeLocker(l *session.Locker[string]) {
	p.closes(l)
	p.log(p, func() string { return "closes its Locker" })
	began := time.Now()
	l.Close()
	p.isClosed(l, time.Since(began))
	p.log(p, func() string { return "has closed its Locker" })
}

// inspect asks for the holder of a name.
func (p *process) inspect(name string) {
	ctx, cancel := context.WithTimeout(p.Alive, actTime)
	defer cancel()
	holder, held, err := p.look(ctx, p.current(), name, "inspect")
	p.log(p, func() string {
		return fmt.Sprintf("the holder of %s: %t %d, %v", name, held, holder.Session, said(err))
	})
}

func (p *process) look(ctx context.Context, l *session.Locker[string], name, op string) (sqllock.Holder, bool, error) {
	type found struct {
		sqllock.Holder
		held bool
	}
	f, err := session.Ask(ctx, l, op, name, func(ctx context.Context, c session.Conn[string]) (f found, err error) {
		f.Holder, f.held, err = c.Holder(ctx, name)
		return f, err
	})
	return f.Holder, f.held, err
}

// terminate ends the session that holds a name.
func (p *process) terminate(name string) {
	ctx, cancel := context.WithTimeout(p.Alive, actTime)
	defer cancel()
	l := p.current()
	holder, ended, err := l.Terminate(ctx, name, session.Ender[string]{
		Look: func(ctx context.Context, op string) (sqllock.Holder, bool, error) { return p.look(ctx, l, name, op) },
		Is:   func(c session.Conn[string], id int64) bool { return base(c).s.ID == id },
		End: func(ctx context.Context, c session.Conn[string], id int64) (bool, error) {
			return base(c).terminate(ctx, name, id)
		},
	})
	p.log(p, func() string {
		return fmt.Sprintf("terminates the holder of %s: %t %d, %v", name, ended, holder.Session, said(err))
	})
}

func base(c session.Conn[string]) *conn {
	if g, ok := c.(*gatedConn); ok {
		return g.conn
	}
	return c.(plainConn).conn
}

// use acquires a name, holds it and releases it.
func (p *process) use(o op) {
	p.wants(o.name)
	defer p.leaves(o.name)
	h := p.acquire(o)
	if h == nil {
		return
	}
	seeds.Sleep(p.Alive, o.hold)
	if !p.Pause() {
		return
	}
	p.ops.Add(1)
	wasLive := p.releases(h)
	p.log(p, func() string { return fmt.Sprintf("releases %v …", h) })
	err := h.Release(p.Alive)
	if !p.Pause() {
		return
	}
	p.log(p, func() string { return fmt.Sprintf("released %v: %v", h, said(err)) })
	p.released(h, wasLive, err)
}

func (p *process) acquire(o op) *held {
	ctx, cancel := o.context(p.Alive)
	defer cancel()
	l := p.current()
	want := session.Want[string]{Name: o.name, Key: o.name, Shared: o.shared}
	if o.within > 0 {
		want.Wait = &o.within
	}
	p.log(p, func() string { return o.String() + " …" })
	began := time.Now()
	call := l.Acquire
	if o.kind == try {
		call = l.TryAcquire
	}
	lock, err := call(stalling{ctx, p}, want)
	p.waited(o.name)
	if !p.Pause() {
		return nil
	}
	p.log(p, func() string { return fmt.Sprintf("%s %s: %v", opNames[o.kind], nameOf(o.name, o.shared), said(err)) })
	if err != nil {
		p.failed(ctx, p, l, o, began, err)
		return nil
	}
	h := &held{Lock: lock, process: p, locker: l, name: o.name, shared: o.shared}
	p.has(h)
	context.AfterFunc(h.Context(), func() {
		if cause := context.Cause(h.Context()); !errors.Is(cause, sqllock.ErrReleased) {
			p.log(p, func() string { return fmt.Sprintf("%v ended: %v", h, cause) })
		}
		p.ending(h)
	})
	return h
}

// context returns the context of an acquisition.
func (o op) context(ctx context.Context) (context.Context, func()) {
	switch {
	case o.wait == 0:
		return ctx, func() {}
	case !o.cancel:
		return context.WithTimeout(ctx, o.wait)
	}
	ctx, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(o.wait, cancel)
	return ctx, func() { timer.Stop(); cancel() }
}

// said is an error, or what it means that there is none.
func said(err error) string {
	if err == nil {
		return "ok"
	}
	return err.Error()
}

// stalling is the context of a user whose goroutine can stall when it asks whether the context has ended.
type stalling struct {
	context.Context //nolint:containedctx // it is one
	p               *process
}

// Err implements context.Context. It does not stall where the engine holds a mutex: virtual time would stand still.
func (s stalling) Err() error {
	s.p.mayStall(underMutex)
	return s.Context.Err()
}

// underMutex reports whether the engine asks the context while it holds a mutex.
func underMutex() bool {
	var pcs [8]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		frame, more := frames.Next()
		if strings.HasSuffix(frame.Function, ".mayLend") || frame.Function == "context.Cause" {
			return true
		}
		if !more {
			return false
		}
	}
}
