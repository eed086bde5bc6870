// Package wait has what a caller needs to wait for a name that another process holds: what was last read of the name, its
// turn among the processes that wait, and when to read next.
package wait
