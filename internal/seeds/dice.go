package seeds

import "time"

// Dice draws numbers from a seed (SplitMix64).
type Dice struct{ state uint64 }

// NewDice returns the Dice of a seed.
func NewDice(seed uint64) *Dice { return &Dice{seed} }

// Mix makes a seed of several numbers.
func Mix(numbers ...uint64) (seed uint64) {
	for _, n := range numbers {
		d := Dice{seed ^ n}
		seed = d.next()
	}
	return seed
}

// MixText makes a seed of a seed and a text.
func MixText(seed uint64, texts ...string) uint64 {
	for _, text := range texts {
		for _, c := range []byte(text) {
			seed = seed*31 + uint64(c)
		}
	}
	return seed
}

func (d *Dice) next() uint64 {
	d.state += 0x9e3779b97f4a7c15
	z := d.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// N returns a number from 0 to n-1.
func (d *Dice) N(n int) int { return int(d.next() % uint64(n)) }

// Chance reports true n times in a thousand.
func (d *Dice) Chance(n int) bool { return d.N(1000) < n }

// Time returns a time from least to most.
func (d *Dice) Time(least, most time.Duration) time.Duration {
	return least + time.Duration(d.next()%uint64(most-least+1))
}

// Pick returns one of several values.
func Pick[T any](d *Dice, from ...T) T { return from[d.N(len(from))] }
