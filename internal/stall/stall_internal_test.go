package stall

import (
	"testing"
	"time"
)

func TestALateBeatIsAStall(t *testing.T) {
	t.Parallel()
	began := time.Now()
	w := &Watch{beat: began}
	w.note(began.Add(time.Minute))                  // the first stall
	w.note(began.Add(time.Minute + 2*tick))         // late, but not by much
	w.note(began.Add(time.Minute + 10*time.Second)) // the second
	w.beat = time.Now().Add(time.Hour)              // no beat is due
	for after, want := range map[time.Duration]time.Duration{
		0:               time.Minute - tick,
		time.Minute:     10*time.Second - 3*tick,
		2 * time.Minute: 0,
	} {
		if got := w.Longest(began.Add(after)); got != want {
			t.Errorf("the longest stall that ended after %v took %v; want %v", after, got, want)
		}
	}
}

// Another goroutine may ask before the beat comes that a stall has held up.
func TestAStallIsKnownBeforeItsBeat(t *testing.T) {
	t.Parallel()
	began := time.Now().Add(-time.Minute)
	w := &Watch{beat: began}
	if got := w.Longest(began); got < time.Minute-tick {
		t.Errorf("the stall of a minute that has just ended took %v", got)
	}
}

func TestAWatchStops(t *testing.T) {
	t.Parallel()
	w := Start()
	w.Longest(time.Now())
	w.Stop()
}
