// Package trouble tracks outages: a wait for a lock continues while the database cannot be used.
package trouble

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock/internal/jitter"
)

// Trouble is what the waits of one Locker know about an outage. The zero value means that there is none.
type Trouble struct {
	last atomic.Pointer[error]

	mu    sync.Mutex
	met   time.Time     // guarded by mu: when an error was last recorded
	told  time.Time     // guarded by mu: when an outage was last reported
	quiet time.Duration // guarded by mu: the shortest time from then to the next report
	known bool          // guarded by mu: whether this outage was reported
}

// TellEvery is the shortest time between two reports. It doubles with each report, up to tellRarest, until there was no
// trouble for calm: while one waiter gets answers and another does not, outages seem to begin and end again and again.
const (
	TellEvery  = 3 * time.Second
	tellRarest = 5 * time.Minute
	calm       = time.Minute
)

// Meet records err, which a wait outlasts. It returns whether the caller should report it: an outage is reported once,
// when it begins, or some time after the one before was reported.
func (t *Trouble) Meet(err error) (tell bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if now.Sub(t.met) > calm {
		t.quiet = 0
	}
	t.met = now
	if t.last.Swap(&err) == nil {
		t.known = false
	}
	if t.known || now.Sub(t.told) < t.quiet {
		return false
	}
	t.told, t.known = now, true
	t.quiet = min(max(2*t.quiet, TellEvery), tellRarest)
	return true
}

// Over records that the database has answered.
func (t *Trouble) Over() {
	if t.last.Load() != nil {
		t.last.Store(nil)
	}
}

// Last returns the last error since the database last answered, or nil.
func (t *Trouble) Last() error {
	if err := t.last.Load(); err != nil {
		return *err
	}
	return nil
}

// With returns the error of a wait that ended because of cause. During an outage it also matches the last error.
func (t *Trouble) With(cause error) error {
	if last := t.Last(); last != nil {
		return fmt.Errorf("%w: %w", cause, last)
	}
	return cause
}

// Pause is the pause between two attempts, which grows with each. It is 0 before the first one.
type Pause time.Duration

const (
	firstPause = Pause(5 * time.Millisecond)
	mostPause  = Pause(2 * time.Second) // up to half as much more with its jitter
)

// Next returns the next pause, with a jitter of half of it more or less, so that the waiters do not retry all at once.
func (p *Pause) Next() time.Duration {
	*p = min(max(2**p, firstPause), mostPause)
	return jitter.Around(time.Duration(*p))
}
