// Package wait has what a caller needs to wait for a name that another process holds: what was last read of the name, the
// priority among the waiters of all processes, the notifications of releases, and when to read next.
package wait
