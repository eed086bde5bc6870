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

// signal sends STOP or CONT, by a program: Go does not know them on every system that this package is built for.
func (p *process) signal(t *testing.T, signal string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "kill", "-"+signal, strconv.Itoa(p.Process.Pid)).CombinedOutput(); err != nil {
		t.Fatalf("kill -%s: %v: %s", signal, err, out)
	}
}

// killedProcess kills a holder whose session TTL ends in no test: it is the end of its connection that frees the lock.
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

// Stopped stops a process that holds a lock, by a job, for longer than its session TTL. The server frees the lock, and the
// process learns of it before anything that it does with the lock succeeds.
func Stopped(t *testing.T, db Database, job Job) {
	t.Helper()
	holder := startHolder(t, db, 9*time.Second, job)
	l := open(t, db, Settings{})
	MustBeHeld(t, l, HeldByChild)
	holder.signal(t, "STOP")
	next := MustAcquire(t, l, HeldByChild)

	holder.send() // answered first thing after it goes on
	holder.signal(t, "CONT")
	holder.mustAnswer(t, "lost=true ended=true")
	MustLive(t, next)
	MustRelease(t, next)
}
