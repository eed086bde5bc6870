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
	done map[string]int // how often what
}

// work does all that it is to do, in a random order, and again until enough was heard.
func (n *nemesis) work(ctx context.Context, answers int) error {
	harms := n.harms()
	for again := true; again; again = !n.run.enough(answers) && ctx.Err() == nil {
		if len(harms) == 0 {
			wait(ctx, time.Second)
		}
		n.rand.Shuffle(len(harms), func(i, j int) { harms[i], harms[j] = harms[j], harms[i] })
		for _, harm := range harms {
			wait(ctx, 100*time.Millisecond+time.Duration(n.rand.Int64N(int64(200*time.Millisecond))))
			if err := harm.do(ctx); err != nil {
				return fmt.Errorf("%s: %w", harm.what, err)
			}
			n.done[harm.what]++
		}
	}
	return nil
}

type harm struct {
	what string
	do   func(context.Context) error
}

func (n *nemesis) harms() (harms []harm) {
	add := func(times int, what string, do func(context.Context) error) {
		for range times {
			harms = append(harms, harm{what, do})
		}
	}
	add(n.run.opts.Kills, "kills", n.kill)
	add(n.run.opts.Stops, "stops", n.stop)
	add(n.run.opts.Cuts, "cuts", n.cut)
	add(n.run.opts.Terminations, "terminations", n.terminate)
	for _, other := range n.run.opts.Others {
		add(other.Times, other.What, func(ctx context.Context) error { return n.other(ctx, other) })
	}
	return harms
}

// other does what its owner wants. What is forgiven is done to a holder, who goes on until it knows.
func (n *nemesis) other(ctx context.Context, other Harm) error {
	name := n.name()
	if other.Forgive {
		var i int
		i, name = n.gripping(ctx)
		defer n.run.processes[i].keep.Store(false)
		defer wait(ctx, n.run.opts.TTL/2)
		defer n.forgive()()
	}
	ctx, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	return other.Do(ctx, name)
}

// forgive begins to forgive, until the longest TTL after the returned function is called.
func (n *nemesis) forgive() (end func()) {
	began := time.Since(n.run.began)
	return func() {
		n.run.history.Forgive(Span{From: began, To: time.Since(n.run.began) + n.run.longest()})
	}
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
	n.run.put(i, next)
	p.replace(next)
	return nil
}

// stop stops a process and lets it go on.
func (n *nemesis) stop(ctx context.Context) error {
	i, _ := n.gripping(ctx)
	p := n.run.processes[i]
	defer p.keep.Store(false)
	if n.run.opts.Writes {
		wait(ctx, time.Duration(n.rand.Int64N(int64(100*time.Millisecond)))) // they begin to write
	}
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
	i, _ := n.gripping(ctx)
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
	locker, ok := n.run.locker.(Terminator)
	if !ok {
		return fmt.Errorf("%T cannot end connections", n.run.locker)
	}
	name := n.name()
	defer n.forgive()()
	ctx, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	for {
		_, ended, err := locker.Terminate(ctx, name)
		if ended || err != nil {
			return err
		}
	}
}

// gripping finds a process that holds a lock, and the name of that. It has the process's workers keep
// what they have until the caller clears keep: what they say of it while the server frees it is
// what matters. When nobody gets a lock, it is any process.
func (n *nemesis) gripping(ctx context.Context) (i int, name string) {
	ctx, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	for {
		i = n.victim()
		n.run.processes[i].keep.Store(true)
		for _, name = range n.run.opts.Names {
			if client, held := n.run.history.holder(name); held && client/n.run.perProcess() == i {
				return i, name
			}
		}
		n.run.processes[i].keep.Store(false)
		wait(ctx, time.Millisecond)
		if ctx.Err() != nil {
			return i, name
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
