//go:build unix

package main

import (
	"errors"
	"os"
	"syscall"
)

// endingSignals are those that ask a program to end.
func endingSignals() []os.Signal {
	return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}
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
