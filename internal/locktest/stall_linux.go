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

// Staller dials connections that stop this process, as SIGSTOP does, after the response to a request was read and
// before any code has seen it. The process must have one processor, GOMAXPROCS=1: after SIGCONT the reader of the
// response then runs before any timer that became due meanwhile.
type Staller struct {
	stops atomic.Int64 // how many times it has stopped the process

	mu   sync.Mutex
	word []byte // guarded by mu: a part of the request; nil when it is not armed
}

// Arm makes the next request that contains word stop the process.
func (s *Staller) Arm(word string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.word = []byte(word)
}

func (s *Staller) disarm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.word = nil
}

// Dial is the dial function for a driver.
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
	due atomic.Bool // the next read stops the process
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
		// The signal goes to this thread, which stops at once, and Go's scheduler does not learn of it.
		c.s.stops.Add(1)
		_, _, _ = syscall.RawSyscall(syscall.SYS_TGKILL, uintptr(os.Getpid()), uintptr(syscall.Gettid()), uintptr(syscall.SIGSTOP))
	}
	return n, err
}

// stallEnv makes the test program run a test as its own child.
const stallEnv = "SQLLOCK_TEST_STALL"

// StalledChild returns, in the child of Stalls, the DSN that Stalls was called with.
func StalledChild() (dsn string, is bool) { return os.LookupEnv(stallEnv) }

// ServeStalls runs in the child. For each line of input it acquires a lock and is stopped when the response arrives. It
// prints whether TryAcquire then returned a lock that had already ended.
func ServeStalls(l sqllock.Locker, s *Staller, word string, opts ...sqllock.Option) {
	ctx := context.Background()
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var lock sqllock.Lock
		var err error
		for stops := s.stops.Load(); stops == s.stops.Load(); { // on a busy machine a try may fail before
			for taken := 0; taken < 3; { // prepares the statements, and makes the session trusted
				lock, err := l.TryAcquire(ctx, "stalled", opts...)
				if err == nil && lock.Release(ctx) == nil {
					taken++
				}
			}
			s.Arm(word)
			lock, err = l.TryAcquire(ctx, "stalled", opts...)
			s.disarm()
			if err == nil && stops == s.stops.Load() {
				_ = lock.Release(ctx) // another round tells
			}
		}
		if err != nil {
			fmt.Fprintln(os.Stdout, "\nstalled: refused:", err)
			continue
		}
		given := time.Now()
		switch err := lock.Release(ctx); {
		case err == nil:
			fmt.Fprintln(os.Stdout, "\nstalled: a lock")
		case time.Since(given) > 500*time.Millisecond: // even a lock that was acquired after the stop may have ended by now
			fmt.Fprintln(os.Stdout, "\nstalled: too slow:", err)
		default:
			fmt.Fprintln(os.Stdout, "\nstalled: a lock that was over:", err)
		}
	}
}

// Stalls tests that a process does not get a lock whose grant arrives after the server has already freed the lock
// again. In the child, the calling test must call ServeStalls. Stalls repeats this a number of times. over reports
// whether the server has freed everything that the child had.
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
			if line == said.Text() { // a line of the testing package
				line = ""
			}
		}
		t.Log(line)
		if line == "" || strings.HasPrefix(line, "a lock that was over") {
			t.Fatalf("the process that was stopped says: %q", line)
		}
	}
}

// isStopped reports whether a process is stopped.
func isStopped(pid int) bool {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // missing if the process has ended
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	return bytes.HasPrefix(rest, []byte("T"))
}

func eventuallyWithin(t *testing.T, within time.Duration, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	if !Poll(ctx, done) {
		t.Fatalf("waited %v until %s", within, what)
	}
}
