//go:build !unix

package console

import "os"

// screenSignals returns none: there is no live view on these systems.
func screenSignals() []os.Signal { return nil }

func stops(os.Signal) bool     { return false }
func continues(os.Signal) bool { return false }
func suspend()                 {}

func inForeground(any) bool { return true }
