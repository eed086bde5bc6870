//go:build unix && !linux

package main

import "syscall"

// dieWithParent does nothing: only Linux lets a child die with its parent.
func dieWithParent(*syscall.SysProcAttr) {}
