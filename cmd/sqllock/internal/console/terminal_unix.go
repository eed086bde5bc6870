//go:build unix

package console

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// screenSignals returns the signals after which the screen must be drawn again.
func screenSignals() []os.Signal {
	return []os.Signal{syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT}
}

func stops(sig os.Signal) bool     { return sig == syscall.SIGTSTP }
func continues(sig os.Signal) bool { return sig == syscall.SIGCONT }

// suspend stops this program, and returns when it is continued.
func suspend() { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) }

// inForeground reports whether this program, and not its shell, has the terminal at the moment.
func inForeground(terminal any) bool {
	file, ok := terminal.(*os.File)
	if !ok {
		return false
	}
	group, err := unix.IoctlGetInt(int(file.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
