// Package process runs the command under a lock: it starts it, forwards signals to it, and ends it with everything that
// it has started. It knows nothing of locks and databases.
package process

import (
	"errors"
	"io/fs"
	"os/exec"
	"runtime"
	"time"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/console"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
)

// Child is the command that runs under the lock.
//
// It gets a process group of its own, so that sqllock can end it together with the processes that it started. If its
// standard input or output is a terminal, it stays in sqllock's group instead. In a group of its own it would be a
// background group: the kernel would stop it as soon as it reads a key or asks for a password, whatever its input is,
// and keys such as Ctrl-C and Ctrl-Z would not reach it. Making it the foreground group would take the terminal away
// from the other programs of a pipeline, and the keys from the script that runs sqllock. (timeout(1) makes the same
// choice, with --foreground.) The price is that sqllock can then end only the command itself.
//
// Its own group is in a session of its own. There it has no terminal, so a question on /dev/tty fails. In sqllock's
// session the kernel would stop it, while the lock stays held.
type Child struct {
	group
	signals *Signals      // are forwarded to the command
	done    chan struct{} // closed when the command has ended
}

// group is the processes that are ended together: the command and, if it has a group of its own, those that it has started.
type group struct {
	cmd  *exec.Cmd
	own  bool   // the command has a group of its own
	left string // Linux: the file in /proc of a process of the group that outlived the command
}

// Times in the termination of a child.
const (
	lookAgain  = 20 * time.Millisecond // interval at which the group is checked
	afterwards = time.Second           // time for a killed group to disappear
)

// Start starts the command, in a process group of its own if it does not use a terminal.
func Start(cmd *exec.Cmd, s *Signals) (*Child, error) {
	g := group{cmd: cmd, own: !console.IsTerminal(cmd.Stdin) && !console.IsTerminal(cmd.Stdout)}
	c := &Child{group: g, signals: s, done: make(chan struct{})}
	if g.own { // in a shared group the kernel sends them to the child, too
		s.receive(groupSignals()...)
	}
	cmd.SysProcAttr = c.attributes()
	started := make(chan error)
	go func() {
		// Pdeathsig (Linux) kills the child when the thread that started it ends, not the process. This thread lives as
		// long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // code reads the ProcessState
			if g.own {
				s.forget(groupSignals()...)
			}
			close(c.done)
		}
	}()
	err := <-started
	if err == nil {
		go c.reapOrphans()
	}
	return c, err
}

// StartCode returns the exit code for a command that could not be started.
func StartCode(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return exit.NotFound
	}
	return exit.CannotRun
}

// Attend waits until the child has ended by itself, and reports whether it has. If over is closed first, the child
// keeps running. Meanwhile it forwards signals to the child.
func (c *Child) Attend(over <-chan struct{}) bool {
	for {
		select {
		case <-c.done:
			return true
		case sig := <-c.signals.C:
			c.forward(sig)
		case <-over:
			return c.ended()
		}
	}
}

func (c *Child) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// End terminates the child and its group: it sends SIGTERM, and after the grace period kills what is left. It returns
// when the child has ended, and its group as far as the system allows. If the system does not allow sqllock to kill them,
// End warns, and waits for the child to end by itself.
func (c *Child) End(grace time.Duration, warn func(error)) {
	c.terminate()
	if c.gone(grace) {
		return
	}
	_ = c.kill() // repeated below
	if c.gone(afterwards) {
		return
	}
	if errors.Is(c.kill(), fs.ErrPermission) { // to kill all that is left
		warn(errors.New("it runs as another user and cannot be ended"))
	}
	c.Attend(nil)
}

// gone waits until the child and its group have ended, or until the time is over. It reports whether they have ended.
func (c *Child) gone(within time.Duration) bool {
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	look := time.NewTicker(lookAgain)
	defer look.Stop()
	for !c.ended() || c.groupLives() {
		select {
		case sig := <-c.signals.C:
			c.forward(sig)
		case <-look.C:
		case <-deadline.C:
			return false
		}
	}
	return true
}
