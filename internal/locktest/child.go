package locktest

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

// startHolder starts a process that holds HeldByChild.
func startHolder(t *testing.T, db Database, ttl time.Duration, job Job) *process {
	t.Helper()
	p := startProcess(t, exec.CommandContext(t.Context(), os.Args[0]), db.Child(db.DSN(t, Access{}), ttl, job))
	p.mustAnswer(t, "held")
	return p
}

func (p *process) mustAnswer(t *testing.T, want string) {
	t.Helper()
	said := make(chan string, 1)
	go func() { said <- p.line() }()
	if line := receive(t, said, soon, "the child process to say "+want); line != want {
		t.Fatalf("the child process says %q; want %q", line, want)
	}
}

// signal sends STOP or CONT with the program kill: Go does not define these signals on every system of this package.
func (p *process) signal(t *testing.T, signal string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "kill", "-"+signal, strconv.Itoa(p.Process.Pid)).CombinedOutput(); err != nil {
		t.Fatalf("kill -%s: %v: %s", signal, err, out)
	}
}

// killedProcess kills a holder whose session TTL does not end during the test: only the end of its connection can free
// the lock.
func killedProcess(t *testing.T, s sessions) {
	holder := startHolder(t, s, endless, JobHold)
	l := s.open(t)
	MustBeHeld(t, l, HeldByChild)
	next := startWaiting(bounded(t), t, s, l, HeldByChild)
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	MustRelease(t, next.mustGet(t))
}

// Stopped stops a process that holds a lock for longer than its session TTL; job is what the process does. The server
// frees the lock. The process must learn of the loss before any operation with the lock succeeds. I5.
func Stopped(t *testing.T, db Database, job Job) {
	t.Helper()
	NeedSessionTimeout(t, db.Pool())
	holder := startHolder(t, db, 9*time.Second, job)
	l := open(t, db, Settings{})
	MustBeHeld(t, l, HeldByChild)
	holder.signal(t, "STOP")
	next := MustAcquire(t, l, HeldByChild)

	holder.send() // the first thing that the process handles after SIGCONT
	holder.signal(t, "CONT")
	holder.mustAnswer(t, "lost=true ended=true")
	MustLive(t, next)
	MustRelease(t, next)
}
