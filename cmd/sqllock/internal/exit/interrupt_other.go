//go:build !unix

package exit

// DieOfInterrupt does nothing: programs do not die of signals here.
func DieOfInterrupt() {}
