//go:build !linux

// Package child makes the processes of a benchmark end with it.
package child

import "os/exec"

// DieWithParent does nothing: only Linux can kill a child together with its parent.
func DieWithParent(*exec.Cmd) {}
