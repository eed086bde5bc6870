package simulation

import "time"

// dice draws numbers from a seed (SplitMix64).
type dice struct{ state uint64 }

// mix makes a seed of several numbers.
func mix(numbers ...uint64) (seed uint64) {
	for _, n := range numbers {
		d := dice{seed ^ n}
		seed = d.next()
	}
	return seed
}

func (d *dice) next() uint64 {
	d.state += 0x9e3779b97f4a7c15
	z := d.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// n returns a number from 0 to n-1.
func (d *dice) n(n int) int { return int(d.next() % uint64(n)) }

// chance reports true n times in a thousand.
func (d *dice) chance(n int) bool { return d.n(1000) < n }

// time returns a time from least to most.
func (d *dice) time(least, most time.Duration) time.Duration {
	return least + time.Duration(d.next()%uint64(most-least+1))
}

// pick returns one of several values.
func pick[T any](d *dice, from ...T) T { return from[d.n(len(from))] }
