//go:build unix && !linux

package process

import "syscall"

// dieWithParent does nothing: only Linux can kill a child together with its parent.
func dieWithParent(*syscall.SysProcAttr) {}

// onlyZombies returns false: only Linux tells in /proc.
func (g *group) onlyZombies() bool { return false }

// reapOrphans does nothing: a container is on Linux.
func (c *Child) reapOrphans() {}
