// Package jitter spreads contenders that would otherwise act at the same moment.
package jitter

import "time"

// Below returns a time from 0 to just below d, which must not be 0. It is made of the nanoseconds of the clock, so a test
// in virtual time runs the same again. Two calls at the same tick of a clock agree.
func Below(d time.Duration) time.Duration {
	z := uint64(time.Now().UnixNano()) // mixed by the finalizer of SplitMix64
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return time.Duration((z ^ z>>31) % uint64(d))
}

// Around returns a time between half of d and one and a half.
func Around(d time.Duration) time.Duration { return d/2 + Below(d) }
