// Package trouble is about databases that cannot be used for the moment: who waits for a lock waits on meanwhile.
package trouble

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Trouble is what the waits of one Locker know of it. The zero value is that there is none.
type Trouble struct {
	last atomic.Pointer[error]

	mu   sync.Mutex
	told time.Time // guarded by mu: when somebody was told last
}

// TellEvery is how often somebody is told of the same trouble at most.
const TellEvery = 3 * time.Second

// Meet notes err, which a wait outlasts, and reports whether somebody should be told: when the trouble begins, unless
// that was lately.
func (t *Trouble) Meet(err error) (tell bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.last.Swap(&err) != nil
	if known || !t.told.IsZero() && time.Since(t.told) < TellEvery {
		return false
	}
	t.told = time.Now()
	return true
}

// Over notes that the database has answered.
func (t *Trouble) Over() {
	if t.last.Load() != nil {
		t.last.Store(nil)
	}
}

// Last returns what was met since the database has answered last, or nil.
func (t *Trouble) Last() error {
	if err := t.last.Load(); err != nil {
		return *err
	}
	return nil
}

// With is the error of a wait that ended because of cause: it matches the trouble, too, if there is any.
func (t *Trouble) With(cause error) error {
	if last := t.Last(); last != nil {
		return fmt.Errorf("%w: %w", cause, last)
	}
	return cause
}

// Pause grows from one attempt to the next; 0 comes before the first one.
type Pause time.Duration

const (
	firstPause = Pause(5 * time.Millisecond)
	mostPause  = Pause(2 * time.Second) // half as much more with its jitter
)

// Next returns the next pause, between half of it and one and a half: not all who wait come at once.
func (p *Pause) Next() time.Duration {
	*p = min(max(2**p, firstPause), mostPause)
	return time.Duration(*p/2 + rand.N(*p)) //nolint:gosec // not a secret
}
