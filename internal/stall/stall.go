// Package stall tells a test whether its process stood still for a while, as on a machine that has no processor for it or
// after SIGSTOP. What became due meanwhile comes at once and in any order, so that order shows nothing.
package stall

import (
	"sync"
	"time"
)

// tick is the time between two beats. A beat that is late by least, or more, was held up by a stall.
const (
	tick  = 50 * time.Millisecond
	least = 2 * tick
)

// Watch notices the stalls of this process.
type Watch struct {
	stop    chan struct{}
	stopped chan struct{}

	mu     sync.Mutex
	beat   time.Time // guarded by mu: the last one
	stalls []stalled // guarded by mu
}

type stalled struct {
	end  time.Time
	time time.Duration
}

// Start starts a Watch. Its goroutine ends with Stop.
func Start() *Watch {
	w := &Watch{stop: make(chan struct{}), stopped: make(chan struct{}), beat: time.Now()}
	go w.run()
	return w
}

func (w *Watch) run() {
	defer close(w.stopped)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			w.note(time.Now())
		case <-w.stop:
			return
		}
	}
}

// note notes a beat, and the stall that has held it up.
func (w *Watch) note(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if late := now.Sub(w.beat) - tick; late >= least {
		w.stalls = append(w.stalls, stalled{now, late})
	}
	w.beat = now
}

// Longest returns how long the longest stall was that ended after this time, or 0 if there was none. A stall that has just
// ended counts, although its beat may not have come yet.
func (w *Watch) Longest(after time.Time) (longest time.Duration) {
	w.note(time.Now())
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.stalls {
		if s.end.After(after) {
			longest = max(longest, s.time)
		}
	}
	return longest
}

// Stop ends the Watch.
func (w *Watch) Stop() {
	close(w.stop)
	<-w.stopped
}
