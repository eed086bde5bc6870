// Package child makes the processes of a benchmark end with it.
package child

import (
	"os/exec"
	"syscall"
)

// DieWithParent makes the kernel kill a command that is started later, when this process has been killed.
func DieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
