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

// screenSignals returns none: there is no live view on these systems.
func screenSignals() []os.Signal { return nil }

func stops(os.Signal) bool     { return false }
func continues(os.Signal) bool { return false }
func suspend()                 {}

func inForeground(any) bool { return true }

func (c *child) attributes() *syscall.SysProcAttr { return nil }
func (c *child) forward(os.Signal)                {}
func (c *child) terminate()                       { c.kill() }
func (c *child) kill()                            { _ = c.cmd.Process.Kill() }
func (c *child) groupLives() bool                 { return false }
func (c *child) code() int                        { return c.cmd.ProcessState.ExitCode() }

func signalNumber(sig os.Signal) int {
	if number, ok := sig.(syscall.Signal); ok {
		return int(number)
	}
	return 2
}
