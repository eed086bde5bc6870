package clock

import (
	"syscall"
	"time"
	"unsafe"
)

// tells says whether asleep knows.
const tells = true

// asleep is for how long the machine was suspended since it was started: CLOCK_BOOTTIME goes on meanwhile, and CLOCK_MONOTONIC, by which
// Go counts, does not (clock_gettime(2)).
func asleep() time.Duration {
	const (
		monotonic = 1
		boottime  = 7
		tries     = 5
	)
	var d time.Duration
	for range tries { // a process may be stopped between two of these
		before, ok := read(monotonic)
		boot, okBoot := read(boottime)
		after, okAfter := read(monotonic)
		if !ok || !okBoot || !okAfter {
			return 0
		}
		if d = boot - after; after-before < time.Millisecond {
			break
		}
	}
	return d
}

func read(clock uintptr) (time.Duration, bool) {
	var ts syscall.Timespec
	_, _, err := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&ts)), 0) //nolint:gosec // as clock_gettime wants it
	return time.Duration(ts.Nano()), err == 0
}
