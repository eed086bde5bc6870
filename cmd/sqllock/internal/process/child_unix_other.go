//go:build unix && !linux

package process

import "syscall"

// dieWithParent does nothing: only Linux can kill a child together with its parent.
func dieWithParent(*syscall.SysProcAttr) {}
