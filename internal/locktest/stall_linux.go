package locktest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
)

// Staller dials connections that stop this process, as SIGSTOP does, when the answer to a request was read and nobody has
// seen it yet. It is for a process with one processor, GOMAXPROCS=1: what reads the answer then goes on before any timer
// does that was due meanwhile.
type Staller struct {
	mu   sync.Mutex
	word []byte // guarded by mu: is in the request; nil when it is not armed
}

// Arm has the next request that contains word stop the process.
func (s *Staller) Arm(word string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.word = []byte(word)
}

// Dial is what a driver is to dial with.
func (s *Staller) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &stallingConn{Conn: c, s: s}, nil
}

type stallingConn struct {
	net.Conn
	s   *Staller
	due atomic.Bool // what is read next stops the process
}

// Write implements net.Conn.
func (c *stallingConn) Write(b []byte) (int, error) {
	c.s.mu.Lock()
	if c.s.word != nil && bytes.Contains(b, c.s.word) {
		c.s.word = nil
		c.due.Store(true)
	}
	c.s.mu.Unlock()
	return c.Conn.Write(b)
}

// Read implements net.Conn.
func (c *stallingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.due.CompareAndSwap(true, false) {
		// To this thread, which does not get any further then; and without a word to Go's scheduler.
		_, _, _ = syscall.RawSyscall(syscall.SYS_TGKILL, uintptr(os.Getpid()), uintptr(syscall.Gettid()), uintptr(syscall.SIGSTOP))
	}
	return n, err
}

// stallEnv makes a test the child of itself.
const stallEnv = "SQLLOCK_TEST_STALL"

// StalledChild returns what Stalls was given for its child, in that child.
func StalledChild() (dsn string, is bool) { return os.LookupEnv(stallEnv) }

// ServeStalls is what the child does: again and again it takes a lock, and is stopped when it gets the answer. It prints
// whether it then had a lock that it did not hold.
func ServeStalls(l sqllock.Locker, s *Staller, word string, opts ...sqllock.Option) {
	ctx := context.Background()
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		for taken := 0; taken < 3; { // so that everything is prepared, and trusted
			lock, err := l.TryAcquire(ctx, "stalled", opts...)
			if err == nil && lock.Release(ctx) == nil {
				taken++
			}
		}
		s.Arm(word)
		lock, err := l.TryAcquire(ctx, "stalled", opts...)
		if err != nil {
			fmt.Fprintln(os.Stdout, "\nstalled: refused:", err)
			continue
		}
		given := time.Now()
		switch err := lock.Release(ctx); {
		case err == nil:
			fmt.Fprintln(os.Stdout, "\nstalled: a lock")
		case time.Since(given) > 500*time.Millisecond: // a lock that was taken anew may be over, too
			fmt.Fprintln(os.Stdout, "\nstalled: too slow:", err)
		default:
			fmt.Fprintln(os.Stdout, "\nstalled: a lock that was over:", err)
		}
	}
}

// Stalls tests that a process has no lock which is granted to it, and whose answer it gets when the server has given the
// lock up again. The test that calls it calls ServeStalls in the child. It does so a number of times; over reports whether the server has
// given up everything that the child had.
func Stalls(t *testing.T, dsn string, times int, over func() bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+strings.Split(t.Name(), "/")[0]+"$")
	cmd.Env = append(os.Environ(), stallEnv+"="+dsn, "GOMAXPROCS=1")
	cmd.Stderr = os.Stderr
	in, errIn := cmd.StdinPipe()
	out, errOut := cmd.StdoutPipe()
	if errIn != nil || errOut != nil {
		t.Fatal(errIn, errOut)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	said := bufio.NewScanner(out)
	for range times {
		if _, err := io.WriteString(in, "go on\n"); err != nil {
			t.Fatal(err)
		}
		eventuallyWithin(t, time.Minute, "the child is stopped and the server has given up what it had", func() bool {
			return isStopped(cmd.Process.Pid) && over()
		})
		if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		line := ""
		for line == "" && said.Scan() {
			line, _ = strings.CutPrefix(said.Text(), "stalled: ")
			if line == said.Text() { // of the testing package
				line = ""
			}
		}
		t.Log(line)
		if line == "" || strings.HasPrefix(line, "a lock that was over") {
			t.Fatalf("the process that was stopped says: %q", line)
		}
	}
}

// isStopped reports whether a process is.
func isStopped(pid int) bool {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // of a process that has ended there is none
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	return bytes.HasPrefix(rest, []byte("T"))
}

func eventuallyWithin(t *testing.T, within time.Duration, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited %v until %s", within, what)
		}
	}
}
