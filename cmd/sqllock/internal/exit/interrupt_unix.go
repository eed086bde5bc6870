//go:build unix

package exit

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// DieOfInterrupt ends the program by SIGINT. A shell whose child exits with code 130 goes on with its script; it ends
// only if the child has died of SIGINT. DieOfInterrupt returns where that is not possible: if SIGINT is ignored, and as
// PID 1, to which the kernel does not deliver it.
func DieOfInterrupt() {
	if os.Getpid() == 1 || signal.Ignored(syscall.SIGINT) {
		return
	}
	signal.Reset(syscall.SIGINT)
	if syscall.Kill(os.Getpid(), syscall.SIGINT) == nil {
		<-time.After(time.Second) // another thread may get the signal, a moment later
	}
}
