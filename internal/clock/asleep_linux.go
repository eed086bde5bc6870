package clock

import (
	"syscall"
	"time"
	"unsafe"
)

// tells says whether asleep can measure suspensions.
const tells = true

// asleep returns how long the machine was suspended since it was started: CLOCK_BOOTTIME runs on during a suspension;
// CLOCK_MONOTONIC, which Go uses, does not (clock_gettime(2)).
//
// The process may be stopped between the two reads. The result is then too short, which the next call corrects.
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
	_, _, err := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&ts)), 0) //nolint:gosec // for clock_gettime
	return time.Duration(ts.Nano()), err == 0
}
