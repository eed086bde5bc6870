package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"time"

	"golang.org/x/term"
)

// child is the command that runs under the lock.
//
// It gets a process group of its own, so that what it starts can be ended with it. Only when
// its standard input or output is a terminal does it stay in sqllock's group: it would be a
// background group there, stopped as soon as it reads a key or asks for a password, whatever its
// input is, and keys such as Ctrl-C and Ctrl-Z would miss it.
// To make it the foreground group instead would take the terminal away from the other programs
// of a pipeline, and the keys from the script that runs sqllock. (timeout(1) makes the same
// choice, with --foreground.) The price is that only the command itself can be ended then.
type child struct {
	cmd      *exec.Cmd
	ownGroup bool
	done     chan struct{} // closed when the command has ended
}

// Moments in the end of a child.
const (
	lookAgain  = 20 * time.Millisecond // between two looks at what is left of a group
	afterwards = time.Second           // for a killed group to be gone
)

func startChild(cmd *exec.Cmd, signals *relay) (*child, error) {
	c := &child{cmd: cmd, ownGroup: !isTerminal(cmd.Stdin) && !isTerminal(cmd.Stdout), done: make(chan struct{})}
	if c.ownGroup { // in a group that is shared they come to the child, too
		signals.receive(groupSignals()...)
	}
	cmd.SysProcAttr = c.attributes()
	started := make(chan error)
	go func() {
		// The signal that ends the child with its parent (Pdeathsig, on Linux) is sent when
		// the thread that started it ends, not the process. This one lives as long as the
		// child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // code asks the ProcessState
			close(c.done)
		}
	}()
	return c, <-started
}

// isTerminal reports whether a reader or writer is a terminal.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// startCode is the exit code for a command that could not be started.
func startCode(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return exitNotFound
	}
	return exitCannotRun
}

// attend waits until the child has ended by itself, and reports whether it has. If over is
// closed first, the child runs on. Meanwhile the child gets the signals.
func (c *child) attend(over <-chan struct{}, signals <-chan os.Signal) bool {
	for {
		select {
		case <-c.done:
			return true
		case sig := <-signals:
			c.forward(sig)
		case <-over:
			return c.ended()
		}
	}
}

func (c *child) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// end ends the child and its group: it asks them to end, and kills what is left after the
// grace. It returns when the child has ended, and the group as far as the system lets it.
func (c *child) end(grace time.Duration, signals <-chan os.Signal) {
	c.terminate()
	if c.gone(grace, signals) {
		return
	}
	c.kill()
	if !c.gone(afterwards, signals) {
		<-c.done
	}
}

// gone waits, for a while, until nothing is left of the child and its group.
func (c *child) gone(within time.Duration, signals <-chan os.Signal) bool {
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	look := time.NewTicker(lookAgain)
	defer look.Stop()
	for !c.ended() || c.groupLives() {
		select {
		case sig := <-signals:
			c.forward(sig)
		case <-look.C:
		case <-deadline.C:
			return false
		}
	}
	return true
}
