//go:build unix

package main

import (
	"errors"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// endingSignals are those that end a program unless it knows them.
func endingSignals() []os.Signal {
	return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}
}

// groupSignals are the others that are meant for a command, too.
func groupSignals() []os.Signal {
	return []os.Signal{syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT}
}

// outliveReaders has writing to a pipe that nobody reads any more fail, and not end sqllock: it is
// to go on guarding the command. The command does not inherit that.
func outliveReaders() {
	if !signal.Ignored(syscall.SIGPIPE) { // else it is so already, and the command inherits that
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	}
}

// screenSignals are those after which the screen is to be drawn again.
func screenSignals() []os.Signal {
	return []os.Signal{syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT}
}

func stops(sig os.Signal) bool     { return sig == syscall.SIGTSTP }
func continues(sig os.Signal) bool { return sig == syscall.SIGCONT }

// suspend stops this program, and returns when it was continued.
func suspend() { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) }

// inForeground reports whether the terminal is this program's at the moment, and not its shell's.
func inForeground(terminal any) bool {
	file, ok := terminal.(*os.File)
	if !ok {
		return false
	}
	group, err := unix.IoctlGetInt(int(file.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// attributes are what the child is started with.
func (c *child) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: c.ownGroup}
	dieWithParent(attr)
	return attr
}

// forward passes a signal on. In a group that is shared for a terminal's sake, the child has
// got the ones that keys send already.
func (c *child) forward(sig os.Signal) {
	number, ok := sig.(syscall.Signal)
	if !ok || !c.ownGroup && (number == syscall.SIGINT || number == syscall.SIGQUIT) {
		return
	}
	if number == syscall.SIGTSTP {
		// Both stop, and the child in a way that it cannot refuse: nobody would watch over it.
		c.signal(syscall.SIGSTOP)
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		return
	}
	c.signal(number)
}

// terminate asks the child to end. What is stopped is continued, for it to hear of it.
func (c *child) terminate() {
	c.signal(syscall.SIGTERM)
	c.signal(syscall.SIGCONT)
}

func (c *child) kill() { c.signal(syscall.SIGKILL) }

// signal sends a signal to the child's group, or to the child if it has none. That nobody is
// left to get it is no error, and there is nothing to do about any other.
func (c *child) signal(sig syscall.Signal) {
	if c.ownGroup {
		_ = syscall.Kill(-c.cmd.Process.Pid, sig)
		return
	}
	_ = c.cmd.Process.Signal(sig)
}

// groupLives reports whether any process is left in the child's own group.
func (c *child) groupLives() bool {
	return c.ownGroup && !errors.Is(syscall.Kill(-c.cmd.Process.Pid, 0), syscall.ESRCH)
}

// code returns the child's exit code, as a shell would.
func (c *child) code() int {
	if status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exitSignal + int(status.Signal())
	}
	return c.cmd.ProcessState.ExitCode()
}

// signalNumber is the n of the exit code 128+n.
func signalNumber(sig os.Signal) int {
	number, _ := sig.(syscall.Signal)
	return int(number)
}
