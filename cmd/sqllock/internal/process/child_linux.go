package process

import "syscall"

// dieWithParent makes the kernel kill the child when sqllock is killed. The child's own children are not killed.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
