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
//
// A process may be stopped between the two looks: then it comes out shorter, which the next look makes good.
func asleep() time.Duration {
	const (
		monotonic = 1
		boottime  = 7
	)
	boot, ok := read(boottime)
	now, okNow := read(monotonic)
	if !ok || !okNow {
		return 0
	}
	return boot - now
}

func read(clock uintptr) (time.Duration, bool) {
	var ts syscall.Timespec
	_, _, err := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&ts)), 0) //nolint:gosec // as clock_gettime wants it
	return time.Duration(ts.Nano()), err == 0
}
