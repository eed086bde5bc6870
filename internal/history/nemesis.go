//go:build unix

package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"
)

// nemesis does harm to processes, preferably while they hold a lock. It is one goroutine.
type nemesis struct {
	run  *run
	rand *rand.Rand
}

// work does all that it is to do, in a random order.
func (n *nemesis) work(ctx context.Context) error {
	var harms []func(context.Context) error
	add := func(times int, harm func(context.Context) error) {
		for range times {
			harms = append(harms, harm)
		}
	}
	add(n.run.opts.Kills, n.kill)
	add(n.run.opts.Stops, n.stop)
	add(n.run.opts.Cuts, n.cut)
	add(n.run.opts.Terminations, n.terminate)
	n.rand.Shuffle(len(harms), func(i, j int) { harms[i], harms[j] = harms[j], harms[i] })
	for _, harm := range harms {
		wait(ctx, 100*time.Millisecond+time.Duration(n.rand.Int64N(int64(200*time.Millisecond))))
		if err := harm(ctx); err != nil {
			return err
		}
	}
	wait(ctx, n.run.opts.Calm)
	return nil
}

// kill kills a process with signal 9 and starts another in its place.
func (n *nemesis) kill(context.Context) error {
	i := n.victim()
	p := n.run.processes[i]
	if err := p.signal(syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill: %w", err)
	}
	<-p.gone
	next, err := n.run.start(i)
	if err != nil {
		return err
	}
	n.run.processes[i] = next
	p.replace(next)
	return nil
}

// stop stops a process and lets it go on.
func (n *nemesis) stop(ctx context.Context) error {
	p := n.run.processes[n.gripping(ctx)]
	defer p.keep.Store(false)
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	n.aboutTTL(ctx)
	if err := p.signal(syscall.SIGCONT); err != nil {
		return fmt.Errorf("continue: %w", err)
	}
	return nil
}

// cut cuts a process off from its server, and heals that. The process goes on, and sees no
// connection end.
func (n *nemesis) cut(ctx context.Context) error {
	i := n.gripping(ctx)
	defer n.run.processes[i].keep.Store(false)
	cable := n.run.cables[i]
	cable.Cut()
	n.aboutTTL(ctx)
	cable.Heal()
	return nil
}

// aboutTTL waits for about as long as the server keeps a session that it does not hear of, sometimes
// for less and sometimes for more.
func (n *nemesis) aboutTTL(ctx context.Context) {
	ttl := n.run.opts.TTL
	wait(ctx, ttl*5/6+time.Duration(n.rand.Int64N(int64(ttl*5/6))))
}

// terminate ends a connection on the server. It is tried again while it hits nobody.
func (n *nemesis) terminate(ctx context.Context) error {
	name := n.name()
	began := time.Since(n.run.began)
	defer func() {
		n.run.history.Forgive(Span{From: began, To: time.Since(n.run.began) + n.run.opts.TTL})
	}()
	ctx, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	for {
		_, ended, err := n.run.locker.Terminate(ctx, name)
		if ended || err != nil {
			return err
		}
	}
}

// gripping finds a process that holds a lock, and has its workers keep what they have until the
// caller clears keep: what they say of it while the server frees it is what matters.
func (n *nemesis) gripping(ctx context.Context) int {
	for {
		i := n.victim()
		n.run.processes[i].keep.Store(true)
		for _, name := range n.run.opts.Names {
			if client, held := n.run.history.holder(name); held && client/n.run.perProcess() == i {
				return i
			}
		}
		n.run.processes[i].keep.Store(false)
		wait(ctx, time.Millisecond)
		if ctx.Err() != nil {
			return i
		}
	}
}

// victim is the process that probably holds a lock of a random name, or any.
func (n *nemesis) victim() int {
	client, held := n.run.history.holder(n.name())
	if !held {
		return n.rand.IntN(len(n.run.processes))
	}
	return client / n.run.perProcess()
}

func (n *nemesis) name() string {
	return n.run.opts.Names[n.rand.IntN(len(n.run.opts.Names))]
}
