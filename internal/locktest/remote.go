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
	"github.com/sqllock/sqllock/internal/netfault"
)

// Remote describes databases that other processes reach over a network.
type Remote struct {
	Open   func(t *testing.T) Database
	Direct bool     // the server listens at its port on every address of the machine
	Env    []string // additional environment variables of the processes
}

// Remotes tests session locks of a process whose packets are lost from some moment on. Each test has a database of its
// own.
func Remotes(t *testing.T, setup Remote) {
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
			r := remote{Remote: setup, Database: setup.Open(t), network: network}
			r.near, r.other = open(t, r, Settings{}), open(t, r, Settings{})
			if _, port, _ := net.SplitHostPort(r.Access(t).Address); r.Direct {
				r.address = net.JoinHostPort(network.Outside(), port)
			} else { // a relay that is never cut: the server's end of a connection stays open
				r.address = netfault.NewOn(t, network.Outside(), netfault.TCP(r.Access(t).Address), netfault.Bytes).Address()
			}
			test(r, t)
		})
	}
}

type remote struct {
	Remote
	Database
	network     *Network
	address     string // of the server, as seen from the network
	near, other Locker
}

// needSilentEnd skips a test that needs the server to find the silence of the process.
func (r remote) needSilentEnd(t *testing.T) {
	t.Helper()
	if !r.Direct { // else TCP finds it, too
		NeedSessionTimeout(t, r.Pool())
	}
}

func (r remote) holder(t *testing.T) {
	r.needSilentEnd(t)
	far := r.start(t)
	far.mustSay(t, "has it")
	r.lose(t, far)
}

func (r remote) holderThatWaited(t *testing.T) {
	r.needSilentEnd(t)
	lock := MustTry(t, r.near, HeldByChild)
	far := r.start(t)
	r.queued(t)
	MustRelease(t, lock)
	far.mustSay(t, "has it")
	r.lose(t, far)
}

// lose cuts off the process that holds the lock, while a waiter waits for it.
func (r remote) lose(t *testing.T, far *process) {
	type grant struct {
		outcome
		at time.Time
	}
	next := make(chan grant, 1)
	go func() {
		lock, err := r.near.Acquire(endingIn(t, 2*soon), HeldByChild)
		next <- grant{outcome{lock, err}, time.Now()}
	}()
	r.queued(t)

	stalls := watchStalls(t)
	r.network.Cut(t)
	cut := time.Now()
	MustBeHeld(t, r.other, HeldByChild) // the server has not noticed
	out := receive(t, next, 2*soon, "the server to give up the session")
	if out.err != nil {
		t.Fatal(out.err)
	}
	told := far.mustSay(t, "lost it")
	t.Logf("TTL %v: the process noted the loss %v after the cut, and the next had the lock %v after that",
		partedTTL, told.Sub(cut), out.at.Sub(told))
	if !told.Before(out.at) && !excuses(t, stalls, cut, partedTTL) {
		t.Errorf("the process noted the loss %v after the next had the lock", told.Sub(out.at))
	}
	r.heal(t, far)
	MustLive(t, out.lock)
	MustRelease(t, out.lock)
}

func (r remote) waiterInQueue(t *testing.T) {
	r.needSilentEnd(t)
	r.waiter(t, func() {})
}

func (r remote) waiterLeaves(t *testing.T) {
	r.waiter(t, func() {
		Eventually(t, "the waiter has left the queue", func() bool { return r.Waiting(t, HeldByChild) == 0 })
	})
}

// waiter cuts off a process that waits, calls before, and releases the lock. Another Locker then gets the lock. The
// process keeps waiting, and joins the queue again when it is no longer cut off.
func (r remote) waiter(t *testing.T, before func()) {
	lock := MustTry(t, r.near, HeldByChild)
	far := r.start(t)
	r.queued(t)
	r.network.Cut(t)
	before()
	MustRelease(t, lock)
	next := MustAcquire(t, r.other, HeldByChild)
	r.network.Heal(t)
	r.queued(t)
	far.send()
	far.mustSay(t, "is held") // the result of the wait, which was cancelled
	far.mustSay(t, "is held")
	MustLive(t, next)
	MustRelease(t, next)
}

// heal lets the process receive the responses that were sent meanwhile, and makes it try again for the lock, which is
// held.
func (r remote) heal(t *testing.T, far *process) {
	t.Helper()
	r.network.Heal(t)
	far.send()
	far.mustSay(t, "is held")
}

// start starts a process in the network.
func (r remote) start(t *testing.T) *process {
	t.Helper()
	return startProcess(t, r.network.Command(t.Context(), os.Args[0]), append(r.Child(r.DSN(t, Access{Address: r.address}), partedTTL, JobWatch), r.Env...))
}

func (r remote) queued(t *testing.T) {
	t.Helper()
	Eventually(t, "the wait is in the server's queue", func() bool { return r.Waiting(t, HeldByChild) > 0 })
}

// watch is the job of a process that will be cut off. It prints the result of a wait for HeldByChild, and what ended
// the lock. After a line of input it prints the result of one more attempt. When its input ends, because its parent has
// ended, it skips the rest.
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

// report prints the state of a lock, with the time of the clock that all processes share.
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
	fmt.Fprintf(out, "%d %s: %q\n", now, word, fmt.Sprint(err)) // keep it on one line
}

// mustSay waits for a report, and returns its time.
func (p *process) mustSay(t *testing.T, want string) time.Time {
	t.Helper()
	said := make(chan string, 1)
	go func() { said <- p.line() }()
	line := receive(t, said, soon, fmt.Sprintf("the child process to say %q", want))
	at, what, _ := strings.Cut(line, " ")
	ns, err := strconv.ParseInt(at, 10, 64)
	if word, _, _ := strings.Cut(what, ":"); err != nil || word != want {
		t.Fatalf("the child process says %q; want %q", line, want)
	}
	return time.Unix(0, ns)
}
