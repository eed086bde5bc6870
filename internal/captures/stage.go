package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/sqllock/sqllock/sqltest"
)

const program = "bin/sqllock"

// patience bounds every wait.
const patience = time.Minute

// stage runs the programs whose output is captured. It is the sqltest.TB of their database.
type stage struct {
	environ   []string
	processes []*process
	cleanups  []func()
}

func newStage() *stage {
	s := &stage{}
	db := sqltest.Postgres(s)
	s.environ = append(os.Environ(), "SQLLOCK_DB="+db.DSN, "TERM=xterm", "NO_COLOR=1")
	s.sqllock("schema", "apply")
	return s
}

// end ends all processes and runs the cleanups.
func (s *stage) end() {
	s.clear()
	for _, cleanup := range slices.Backward(s.cleanups) {
		cleanup()
	}
	s.cleanups = nil
}

func (s *stage) must(err error) {
	if err != nil {
		s.Fatalf("%v", err)
	}
}

// Helper and the methods below implement sqltest.TB.
func (s *stage) Helper() {}

// Name returns a name for the database.
func (s *stage) Name() string { return "captures" }

// Failed returns false: a failure ends the program.
func (s *stage) Failed() bool { return false }

// Cleanup registers f to be called at the end.
func (s *stage) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

// Logf logs to stderr.
func (s *stage) Logf(format string, args ...any) { log.Printf(format, args...) }

// Skipf ends the program, because there is no server.
func (s *stage) Skipf(format string, args ...any) { s.Fatalf(format, args...) }

// Fatalf ends the program.
func (s *stage) Fatalf(format string, args ...any) {
	s.end()
	log.Fatalf(format, args...)
}

// sqllock runs the program to its end and returns its output. If there is output, the exit code is ignored: it may be
// a verdict.
func (s *stage) sqllock(args ...string) string {
	cmd := exec.CommandContext(context.Background(), program, args...)
	cmd.Env, cmd.Stderr = s.environ, os.Stderr
	out, err := cmd.Output()
	if len(out) == 0 {
		s.must(err)
	}
	return string(out)
}

// until runs the program repeatedly until it prints this text.
func (s *stage) until(want string, args ...string) {
	for deadline := time.Now().Add(patience); !strings.Contains(s.sqllock(args...), want); {
		if time.Now().After(deadline) {
			s.Fatalf("sqllock %v does not print %q", args, want)
		}
	}
}

// process is a program that holds a lock or waits for it.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Reader
}

// start starts sqllock run with this host name.
func (s *stage) start(host string, args ...string) *process {
	unshare := []string{"--uts"}
	if os.Getuid() != 0 {
		unshare = append(unshare, "--map-root-user")
	}
	unshare = append(unshare, "sh", "-c", `echo "$0" >/proc/sys/kernel/hostname && exec "$@"`, host, program, "run")
	unshare = append(append(unshare, args...), "--", "sh", "-c", "echo held; exec cat")
	p := &process{cmd: exec.CommandContext(context.Background(), "unshare", unshare...)}
	p.cmd.Env = s.environ
	stdin, err := p.cmd.StdinPipe()
	s.must(err)
	out, err := p.cmd.StdoutPipe()
	s.must(err)
	p.stdin, p.out = stdin, bufio.NewReader(out)
	s.must(p.cmd.Start())
	s.processes = append(s.processes, p)
	return p
}

// hold starts a process and returns when it holds its lock.
func (s *stage) hold(host string, args ...string) *process {
	p := s.start(host, args...)
	if line, err := p.out.ReadString('\n'); line != "held\n" {
		s.Fatalf("%v does not hold its lock: %v", args, errors.Join(err, p.cmd.Wait()))
	}
	return p
}

// letGo makes a process release its lock; kill ends it without a release.
func (p *process) letGo() { _ = p.stdin.Close() }
func (p *process) kill()  { _ = p.cmd.Process.Kill() }

// clear ends all processes, which release their locks, and deletes the leases of the dead ones.
func (s *stage) clear() {
	for _, p := range s.processes {
		p.letGo()
		_ = p.cmd.Wait() // some were killed, and some have lost their locks
	}
	if s.processes = nil; s.environ != nil {
		s.sqllock("purge", "--older-than", "0")
	}
}

// terminal runs the program on a terminal of 80 × 24. The returned function waits until a text appears, and returns the
// whole screen.
func (s *stage) terminal(args ...string) (shows func(want string) string) {
	socket := fmt.Sprintf("captures-%d", os.Getpid())
	tmux := func(args ...string) string {
		cmd := exec.CommandContext(context.Background(), "tmux", append([]string{"-L", socket}, args...)...)
		cmd.Env, cmd.Stderr = s.environ, os.Stderr
		out, err := cmd.Output()
		s.must(err)
		return string(out)
	}
	tmux(append([]string{"-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", program}, args...)...)
	s.Cleanup(func() { tmux("kill-server") })
	return func(want string) string {
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
			if screen := tmux("capture-pane", "-p"); strings.Contains(screen, want) {
				return strings.TrimRight(screen, "\n") + "\n"
			}
		}
		s.Fatalf("sqllock %v does not show %q", args, want)
		return ""
	}
}
