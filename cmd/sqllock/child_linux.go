package main

import "syscall"

// dieWithParent has the kernel kill the child when sqllock is killed. What the child started
// itself is not killed with it.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
