//go:build unix

package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"
)

// nemesis harms processes, preferably while they hold a lock. It is one goroutine.
type nemesis struct {
	run  *run
	rand *rand.Rand
	done map[string]int // counts of each harm
}

// work does all its harms in a random order, and repeats that until there are enough answers.
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

// other does a harm of the caller. A harm that is forgiven hits a holder, which continues until it knows.
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

// forgive begins to forgive. Forgiving ends the longest TTL after the call of the returned function.
func (n *nemesis) forgive() (end func()) {
	began := time.Since(n.run.began)
	return func() {
		n.run.history.Forgive(Span{From: began, To: time.Since(n.run.began) + n.run.longest()})
	}
}

// kill kills a process with signal 9 and replaces it.
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

// stop stops a process for a while.
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

// cut cuts a process off from its server for a while. The process keeps running, and its connections do not end.
func (n *nemesis) cut(ctx context.Context) error {
	i, _ := n.gripping(ctx)
	defer n.run.processes[i].keep.Store(false)
	cable := n.run.cables[i]
	cable.Cut()
	n.aboutTTL(ctx)
	cable.Heal()
	return nil
}

// aboutTTL waits for about as long as the server keeps a session that it hears nothing from, sometimes shorter and
// sometimes longer.
func (n *nemesis) aboutTTL(ctx context.Context) {
	ttl := n.run.opts.TTL
	wait(ctx, ttl*5/6+time.Duration(n.rand.Int64N(int64(ttl*5/6))))
}

// terminate ends a connection on the server. It tries again until it hits one.
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

// gripping finds a process that holds a lock, and the name of the lock. It makes the workers of the process keep their
// locks until the caller clears keep, because their answers while the server frees the locks are what matters. If no
// process gets a lock, it returns any process.
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

// victim returns a process that probably holds a lock with a random name, or any process.
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
