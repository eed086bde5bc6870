//go:build !unix

package main

import (
	"os"
	"syscall"
)

// endingSignals returns the signals that ask a program to end. On Windows they come from the console, which sends them
// to every program in it.
func endingSignals() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }

func groupSignals() []os.Signal { return nil }
func outliveReaders()           {}

func (c *child) attributes() *syscall.SysProcAttr { return nil }
func (c *child) forward(os.Signal)                {}
func (c *child) terminate()                       { c.kill() }
func (c *child) kill()                            { _ = c.cmd.Process.Kill() }
func (c *child) groupLives() bool                 { return false }
func (c *child) code() int                        { return c.cmd.ProcessState.ExitCode() }

// signalCode returns the exit code of a program that a signal has ended.
func signalCode(sig os.Signal) int {
	if number, ok := sig.(syscall.Signal); ok {
		return exitSignal + int(number)
	}
	return exitSignal + 2
}
