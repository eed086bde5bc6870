package locktest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
)

// Job is the work of a child process.
type Job string

// The jobs of child processes.
const (
	JobHold  Job = "hold"  // prints "held" when it holds HeldByChild, and after a line of input what became of the lock
	JobWatch Job = "watch" // prints when it acquires and loses HeldByChild, see watch
	JobRelay Job = "relay" // hands a lock on and prints how often, see handOn
)

// HeldByChild is the lock that a child process holds.
const HeldByChild = "the lock"

// perProcess is how many goroutines of a process wait for one lock.
const perProcess = 8

// Run does the job in a child process.
func (j Job) Run(l Locker, in io.Reader, out io.Writer) error {
	ctx := context.Background()
	switch j {
	case JobHold:
		return holdOn(ctx, l, in, out)
	case JobWatch:
		return watch(ctx, l, in, out)
	case JobRelay:
		return handOn(ctx, l, in, out)
	}
	return fmt.Errorf("no such job: %q", j)
}

func holdOn(ctx context.Context, l Locker, in io.Reader, out io.Writer) error {
	acquiring, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	lock, err := l.Acquire(acquiring, HeldByChild)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "held")
	bufio.NewScanner(in).Scan()
	err = lock.Release(ctx)
	fmt.Fprintf(out, "lost=%t ended=%t\n", errors.Is(err, sqllock.ErrLost), lock.Context().Err() != nil)
	return nil
}

// handOn is the job of a child process in the benchmark of a lock that processes hand on to each other. It prints
// "ready". At the first line of input its waiters start. At the second it begins to count how often they hold the lock.
// At the third they stop, and it prints the count.
func handOn(ctx context.Context, l Locker, in io.Reader, out io.Writer) error {
	release, err := acquire(ctx, l, fmt.Sprint("of process ", os.Getpid())) // opens a connection
	if err != nil {
		return err
	}
	if err := release(ctx); err != nil {
		return err
	}
	fmt.Fprintln(out, "ready")
	r := newRelay(ctx, perProcess, func(ctx context.Context, _ int) (func(context.Context) error, error) {
		return acquire(ctx, l, "relay")
	})
	lines := bufio.NewScanner(in)
	for _, then := range []func(){r.start, r.count} {
		lines.Scan()
		then()
	}
	lines.Scan()
	if err := r.stop(); err != nil {
		return err
	}
	fmt.Fprintln(out, sum(r.served))
	return nil
}

// fairWindow returns how long processes hand a lock on while their acquisitions are counted. If no waiter is woken, a
// process keeps the lock for 50 ms or more, so each process has held it once after half a second.
func fairWindow() time.Duration { return 3 * window() }

// processes makes 8 processes with 8 waiters each hand on one lock, and before and after that 64 connections that wait
// in the server's own queue. "x-native" is the rate of handoffs of the processes divided by that of the connections.
// "max/min" compares the processes. "conns/process" is the largest observed number of connections, divided by the
// number of processes.
func (o Bench) processes(b *testing.B) {
	const processes = 8
	children := make([]*process, processes)
	for i := range children {
		children[i] = o.child(b, JobRelay)
	}
	for _, c := range children {
		c.expect(b, "ready")
	}
	pinned := make([]Bare, processes*perProcess)
	queue := o.Queue
	if queue == nil {
		queue = o.Bare
	}
	for i := range pinned {
		pinned[i] = queue(b)
	}
	once(b, func() {
		native(b, pinned, window()/4) // opens the connections
		handoffs := native(b, pinned, window()/2)
		peak := o.watch(b)
		served := relayed(b, children)
		most := peak()
		handoffs += native(b, pinned, window()/2)
		perSecond := float64(sum(served)) / fairWindow().Seconds()
		b.ReportMetric(perSecond, "handoffs/s")
		b.ReportMetric(perSecond*window().Seconds()/float64(handoffs), "x-native")
		b.ReportMetric(unfairness(served), "max/min")
		o.counted(b, most/processes, "conns/process")
	})
}

// relayed makes the processes hand on the lock. It returns how often each of them held it in one window, which begins
// when all have been running for some time.
func relayed(b *testing.B, children []*process) (served []int) {
	b.Helper()
	for _, during := range []time.Duration{window() / 4, fairWindow(), 0} {
		for _, c := range children {
			c.send()
		}
		timer := time.NewTimer(during)
		select {
		case <-timer.C:
		case <-b.Context().Done():
			timer.Stop()
		}
	}
	for _, c := range children {
		line := c.line()
		n, err := strconv.Atoi(line)
		if err != nil {
			b.Fatalf("a child process says %q", line)
		}
		served = append(served, n)
	}
	return served
}

// native makes connections of the bare driver hand on a lock for a while, and returns the total number of acquisitions.
func native(b *testing.B, pinned []Bare, during time.Duration) int {
	b.Helper()
	r := newRelay(b.Context(), len(pinned), func(ctx context.Context, i int) (func(context.Context) error, error) {
		release := func(ctx context.Context) error { return pinned[i].Unlock(ctx, "native") }
		return release, pinned[i].Wait(ctx, "native")
	})
	r.start()
	r.pause(during)
	if err := r.stop(); err != nil {
		b.Fatal(err)
	}
	return sum(r.served)
}

// killed kills a process that holds a lock with signal 9 while a Locker waits for the lock, and measures the time until
// the Locker has it.
func (o Bench) killed(b *testing.B) {
	const rounds = 15
	l := o.Locker(b)
	once(b, func() {
		var took []time.Duration
		for range rounds {
			took = append(took, o.kill(b, l))
		}
		b.ReportMetric(percentile(took, 50)/1e3, "p50-ms")
		b.ReportMetric(percentile(took, 100)/1e3, "max-ms")
	})
}

func (o Bench) kill(b *testing.B, l Locker) time.Duration {
	b.Helper()
	holder := o.child(b, JobHold)
	holder.expect(b, "held")
	ctx, cancel := context.WithTimeout(b.Context(), soon)
	defer cancel()
	type outcome struct {
		at      time.Time
		release func(context.Context) error
		err     error
	}
	next := make(chan outcome, 1)
	go func() {
		release, err := acquire(ctx, l, HeldByChild)
		next <- outcome{time.Now(), release, err}
	}()
	for waiting := 0; waiting == 0; {
		var err error
		if waiting, err = o.Waiting(ctx); err != nil {
			b.Fatal(err)
		}
	}
	began := time.Now()
	if err := holder.Process.Kill(); err != nil {
		b.Fatal(err)
	}
	out := <-next
	if out.err != nil {
		b.Fatal(out.err)
	}
	if err := out.release(ctx); err != nil {
		b.Fatal(err)
	}
	return out.at.Sub(began)
}

// process is the test program as another process.
type process struct {
	*exec.Cmd
	in  io.Writer
	out *bufio.Scanner
}

func (o Bench) child(b *testing.B, job Job) *process {
	b.Helper()
	return startProcess(b, exec.CommandContext(b.Context(), os.Args[0]), o.Child(job))
}

// startProcess starts a command that runs the test program, as the child process that env selects.
func startProcess(tb testing.TB, cmd *exec.Cmd, env []string) *process {
	tb.Helper()
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	in, errIn := cmd.StdinPipe()
	out, errOut := cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut, cmd.Start()); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &process{Cmd: cmd, in: in, out: bufio.NewScanner(out)}
}

// send sends an empty line. If the child is gone, its missing output will show that.
func (p *process) send() { _, _ = io.WriteString(p.in, "\n") }

func (p *process) line() string {
	p.out.Scan()
	return strings.TrimSpace(p.out.Text())
}

func (p *process) expect(b *testing.B, want string) {
	b.Helper()
	if line := p.line(); line != want {
		b.Fatalf("a child process says %q; want %q", line, want)
	}
}

func sum(numbers []int) (total int) {
	for _, n := range numbers {
		total += n
	}
	return total
}
