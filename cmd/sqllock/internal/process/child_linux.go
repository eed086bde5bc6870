package process

import (
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// dieWithParent makes the kernel kill the child when sqllock is killed. The child's own children are not killed.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// reapOrphans reaps, until the child has ended, the processes whose parent ended before them. The kernel makes them
// children of the first process of a container. It returns at once if that is not sqllock.
func (c *Child) reapOrphans() {
	if os.Getpid() != 1 {
		return
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	for {
		lists, _ := filepath.Glob("/proc/self/task/*/children")
		for _, list := range lists {
			children, _ := os.ReadFile(list) //nolint:gosec // a file of the kernel; its thread may have ended
			for text := range strings.FieldsSeq(string(children)) {
				if pid, err := strconv.Atoi(text); err == nil && pid != c.cmd.Process.Pid {
					_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
				}
			}
		}
		select {
		case <-ended:
		case <-c.done:
			return
		}
	}
}
