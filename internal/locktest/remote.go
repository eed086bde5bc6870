package locktest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
)

// Remote is a database that another process reaches over a network. Nobody else uses it.
type Remote struct {
	Server string        // host:port
	Direct bool          // Server listens at its port on every address of the machine
	TTL    time.Duration // the session TTL of the process

	NewLocker func(t *testing.T) Locker

	// Child is the environment that makes the test program a child process, which connects to
	// address instead of Server.
	Child func(t *testing.T, address string, job Job) []string

	Waiting func(t *testing.T, name string) int // counts who waits for a lock on the server
}

// Remotes tests session locks of a process whose packets are lost from some moment on. Each test
// has a database of its own.
func Remotes(t *testing.T, open func(t *testing.T) Remote) {
	t.Helper()
	for name, test := range map[string]func(remote, *testing.T){
		"a process that is cut off notes the loss of its lock before another has it":          remote.holder,
		"a process that is cut off with a lock that it waited for notes the loss, too":        remote.holderThatWaited,
		"a process that is cut off while it is in the queue does not get the lock":            remote.waiterInQueue,
		"a process that is cut off while it waits leaves the queue and does not get the lock": remote.waiterLeaves,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			network := NewNetwork(t)
			r := remote{Remote: open(t), network: network}
			r.near, r.other = r.NewLocker(t), r.NewLocker(t)
			if _, port, _ := net.SplitHostPort(r.Server); r.Direct {
				r.address = net.JoinHostPort(network.Outside(), port)
			} else { // a relay that is never cut: the server's end of a connection stays open
				r.address = NewCable(t, network.Outside(), r.Server).Address()
			}
			test(r, t)
		})
	}
}

type remote struct {
	Remote
	network     *Network
	address     string // of the server, in the network
	near, other Locker
}

func (r remote) holder(t *testing.T) {
	far := r.start(t)
	far.mustSay(t, "has it")
	r.lose(t, far)
}

func (r remote) holderThatWaited(t *testing.T) {
	lock := mustTry(t, r.near, HeldByChild)
	far := r.start(t)
	r.queued(t)
	mustRelease(t, lock)
	far.mustSay(t, "has it")
	r.lose(t, far)
}

// lose cuts the process off that holds the lock, while another waits for it.
func (r remote) lose(t *testing.T, far *process) {
	type grant struct {
		outcome
		at time.Time
	}
	next := make(chan grant, 1)
	go func() {
		lock, err := r.near.Acquire(bounded(t), HeldByChild)
		next <- grant{outcome{lock, err}, time.Now()}
	}()
	r.queued(t)

	r.network.Cut(t)
	cut := time.Now()
	mustBeHeld(t, r.other, HeldByChild) // the server has not noticed
	out := receive(t, next, soon, "the server to give up the session")
	if out.err != nil {
		t.Fatal(out.err)
	}
	told := far.mustSay(t, "lost it")
	t.Logf("TTL %v: the process noted the loss %v after the cut, and the next had the lock %v after that",
		r.TTL, told.Sub(cut), out.at.Sub(told))
	if !told.Before(out.at) {
		t.Errorf("the process noted the loss %v after the next had the lock", told.Sub(out.at))
	}
	if took := out.at.Sub(cut); took > r.TTL+promptly {
		t.Errorf("the next had the lock %v after the cut", took)
	}
	r.heal(t, far)
	mustLive(t, out.lock)
	mustRelease(t, out.lock)
}

func (r remote) waiterInQueue(t *testing.T) {
	r.waiter(t, func() {})
}

func (r remote) waiterLeaves(t *testing.T) {
	r.waiter(t, func() {
		eventually(t, "the waiter has left the queue", func() bool { return r.Waiting(t, HeldByChild) == 0 })
	})
}

// waiter cuts a process off that waits, and releases the lock after it did what is given.
func (r remote) waiter(t *testing.T, before func()) {
	lock := mustTry(t, r.near, HeldByChild)
	far := r.start(t)
	r.queued(t)
	r.network.Cut(t)
	before()
	mustRelease(t, lock)
	released := time.Now()
	next := mustAcquire(t, r.other, HeldByChild)
	took := time.Since(released)
	t.Logf("TTL %v: somebody else had the lock %v after its release", r.TTL, took)
	if took > r.TTL+promptly {
		t.Errorf("somebody else had the lock only %v after its release", took)
	}
	far.mustSayWithin(t, 2*soon, "failed") // one who had waited for a while tries to connect again, for 15 s
	r.heal(t, far)
	mustLive(t, next)
	mustRelease(t, next)
}

// heal lets the process have the answers that were sent meanwhile, and try again for the lock,
// which another has.
func (r remote) heal(t *testing.T, far *process) {
	t.Helper()
	r.network.Heal(t)
	far.send()
	far.mustSay(t, "is held")
}

// start starts a process in the network.
func (r remote) start(t *testing.T) *process {
	t.Helper()
	return startProcess(t, r.network.Command(t.Context(), os.Args[0]), r.Child(t, r.address, JobWatch))
}

func (r remote) queued(t *testing.T) {
	t.Helper()
	eventually(t, "the wait is in the server's queue", func() bool { return r.Waiting(t, HeldByChild) > 0 })
}

// watch is what a process does that will be cut off: it says what came of a wait for HeldByChild, and
// what ended the lock. After a line of input it says what came of one more try. At the end of its
// input, which is that of its parent, it does not stay for the rest.
func watch(ctx context.Context, l Locker, in io.Reader, out io.Writer) error {
	asked, ask := context.WithCancel(ctx)
	go func() {
		bufio.NewScanner(in).Scan()
		ask()
	}()
	lock, err := l.Acquire(asked, HeldByChild)
	report(out, err)
	if err == nil {
		select {
		case <-lock.Context().Done():
		case <-asked.Done():
		}
		report(out, context.Cause(lock.Context()))
	}
	<-asked.Done()
	_, err = l.TryAcquire(ctx, HeldByChild)
	report(out, err)
	return nil
}

// report says what is known of a lock, and since when, on the clock that processes share.
func report(out io.Writer, err error) {
	now := time.Now().UnixNano()
	word := "failed"
	switch {
	case err == nil:
		word = "has it"
	case errors.Is(err, sqllock.ErrLost):
		word = "lost it"
	case errors.Is(err, sqllock.ErrHeld):
		word = "is held"
	}
	fmt.Fprintf(out, "%d %s: %q\n", now, word, fmt.Sprint(err)) // of one line
}

// mustSay waits for a report, and returns when it was made.
func (p *process) mustSay(t *testing.T, want string) time.Time {
	t.Helper()
	return p.mustSayWithin(t, soon, want)
}

func (p *process) mustSayWithin(t *testing.T, within time.Duration, want string) time.Time {
	t.Helper()
	said := make(chan string, 1)
	go func() { said <- p.line() }()
	line := receive(t, said, within, fmt.Sprintf("the child process to say %q", want))
	at, what, _ := strings.Cut(line, " ")
	ns, err := strconv.ParseInt(at, 10, 64)
	if word, _, _ := strings.Cut(what, ":"); err != nil || word != want {
		t.Fatalf("the child process says %q; want %q", line, want)
	}
	return time.Unix(0, ns)
}
