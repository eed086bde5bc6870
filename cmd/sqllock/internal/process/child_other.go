//go:build !unix

package process

import (
	"os"
	"syscall"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
)

// endingSignals returns the signals that ask a program to end. On Windows they come from the console, which sends them
// to every program in it.
func endingSignals() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }

func groupSignals() []os.Signal { return nil }
func outliveReaders()           {}

// On Windows sqllock ends the command alone, and without asking it first.

func (g *group) attributes() *syscall.SysProcAttr { return nil }
func (g *group) forward(os.Signal)                {}
func (g *group) terminate()                       { _ = g.kill() }
func (g *group) kill() error                      { return g.cmd.Process.Kill() }
func (g *group) groupLives() bool                 { return false }
func (c *Child) reapOrphans()                     {}

// Crashed reports whether a signal has ended the command. There are none.
func (c *Child) Crashed() bool { return false }

// Result returns how the child has ended, as the error that sqllock ends with.
func (c *Child) Result() exit.Error { return exit.Error{Code: c.cmd.ProcessState.ExitCode()} }
