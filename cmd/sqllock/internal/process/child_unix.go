//go:build unix

package process

import (
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
)

// endingSignals returns the signals that end a program that does not handle them.
func endingSignals() []os.Signal {
	return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}
}

// groupSignals returns the other signals that sqllock forwards to a command.
func groupSignals() []os.Signal {
	return []os.Signal{syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT}
}

// outliveReaders makes a write to a pipe without a reader fail instead of ending sqllock, which must go on guarding the
// command. The command does not inherit this.
func outliveReaders() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}

// attributes returns the attributes that the child is started with.
func (c *Child) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: c.ownGroup} // a session, and so a group
	dieWithParent(attr)
	return attr
}

// forward passes a signal on to the child. If the child shares the group for the sake of a terminal, it has already got
// the signals that keys send.
func (c *Child) forward(sig os.Signal) {
	number, ok := sig.(syscall.Signal)
	if !ok || !c.ownGroup && (number == syscall.SIGINT || number == syscall.SIGQUIT) {
		return
	}
	if number == syscall.SIGTSTP {
		// Both stop, or neither: nobody guards a child that runs on. It gets SIGSTOP, which it cannot refuse. The kernel does
		// not stop the first process of a container.
		if os.Getpid() != 1 && !errors.Is(c.send(syscall.SIGSTOP), fs.ErrPermission) {
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		}
		return
	}
	c.signal(number)
	switch number {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
		c.signal(syscall.SIGCONT) // a stopped child would not get the signal
	}
}

// terminate asks the child to end. It also continues a stopped child, so that the child receives the signal.
func (c *Child) terminate() {
	c.signal(syscall.SIGTERM)
	c.signal(syscall.SIGCONT)
}

func (c *Child) kill() error { return c.send(syscall.SIGKILL) }

// signal sends a signal. A missing receiver is no error, and any other error has no remedy.
func (c *Child) signal(sig syscall.Signal) { _ = c.send(sig) }

// send sends a signal to the child's group, or to the child if it has no group of its own.
func (c *Child) send(sig syscall.Signal) error {
	if c.ownGroup {
		return syscall.Kill(-c.cmd.Process.Pid, sig)
	}
	return c.cmd.Process.Signal(sig)
}

// groupLives reports whether any process is left in the child's own group, after the child has ended. Except on Linux a
// process that has ended counts until its parent reaps it. As PID 1 of a container sqllock is that parent.
func (c *Child) groupLives() bool {
	if !c.ownGroup {
		return false
	}
	group := -c.cmd.Process.Pid
	for reaped := 1; reaped > 0; {
		reaped, _ = syscall.Wait4(group, nil, syscall.WNOHANG, nil)
	}
	switch {
	case errors.Is(syscall.Kill(group, 0), syscall.ESRCH):
		return false
	case !c.onlyZombies():
		return true
	}
	_ = c.kill() // for one that was started meanwhile, or that this user may not see
	return false
}

// Crashed reports whether a signal has ended the command that sqllock does not pass on: a fault of its own, or SIGKILL, as
// from a kernel that is short of memory. What the command has started was told nothing, and works on.
func (c *Child) Crashed() bool {
	status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && !slices.Contains(endingSignals(), os.Signal(status.Signal()))
}

// Result returns how the child has ended, as the error that sqllock ends with. The exit code is that of a shell.
func (c *Child) Result() exit.Error {
	if status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exit.Error{Code: exit.Signal + int(status.Signal()), Interrupted: status.Signal() == syscall.SIGINT}
	}
	return exit.Error{Code: c.cmd.ProcessState.ExitCode()}
}
