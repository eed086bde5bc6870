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
func (g *group) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: g.own} // a session, and so a group
	dieWithParent(attr)
	return attr
}

// forward passes a signal on to the child. If the child shares the group for the sake of a terminal, it has already got
// the signals that keys send.
func (g *group) forward(sig os.Signal) {
	number, ok := sig.(syscall.Signal)
	if !ok || !g.own && (number == syscall.SIGINT || number == syscall.SIGQUIT) {
		return
	}
	if number == syscall.SIGTSTP {
		// Both stop, or neither: nobody guards a child that runs on. It gets SIGSTOP, which it cannot refuse. The kernel does
		// not stop the first process of a container.
		if os.Getpid() != 1 && !errors.Is(g.send(syscall.SIGSTOP), fs.ErrPermission) {
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		}
		return
	}
	g.signal(number)
	switch number {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
		g.signal(syscall.SIGCONT) // a stopped child would not get the signal
	}
}

// terminate asks the child to end. It also continues a stopped child, so that the child receives the signal.
func (g *group) terminate() {
	g.signal(syscall.SIGTERM)
	g.signal(syscall.SIGCONT)
}

func (g *group) kill() error { return g.send(syscall.SIGKILL) }

// signal sends a signal. A missing receiver is no error, and any other error has no remedy.
func (g *group) signal(sig syscall.Signal) { _ = g.send(sig) }

// send sends a signal to the group, or to the command if it has no group of its own.
func (g *group) send(sig syscall.Signal) error {
	if g.own {
		return syscall.Kill(-g.cmd.Process.Pid, sig)
	}
	return g.cmd.Process.Signal(sig)
}

// groupLives reports whether any process is left in the group after the command has ended. It is false if the command has no
// group of its own. Except on Linux a process that has ended counts until its parent reaps it. As PID 1 of a container
// sqllock is that parent.
func (g *group) groupLives() bool {
	if !g.own {
		return false
	}
	id := -g.cmd.Process.Pid
	for reaped := 1; reaped > 0; {
		reaped, _ = syscall.Wait4(id, nil, syscall.WNOHANG, nil)
	}
	switch {
	case errors.Is(syscall.Kill(id, 0), syscall.ESRCH):
		return false
	case !g.onlyZombies():
		return true
	}
	_ = g.kill() // for one that was started meanwhile, or that this user may not see
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
