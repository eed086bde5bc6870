// Package clock has the time that the deadlines of locks go by: unlike Go's own, it also passes while the machine is suspended, where
// the system can tell (Linux).
//
// Its times are those of package time, moved ahead by how long the machine was suspended since the process began. They compare with each
// other; for anything else, such as the deadline of a context, Plain moves them back.
package clock

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// lookEvery is how often a timer looks whether the machine was suspended: timers stand still meanwhile.
	lookEvery = time.Second
	// fresh is for how long nobody looks again.
	fresh = 100 * time.Millisecond
	// least is what counts as a suspension: the clocks are not read at the same moment.
	least = 50 * time.Millisecond
)

var (
	known    atomic.Int64 // for how long the machine was suspended, in nanoseconds
	looked   atomic.Int64 // when that was looked for last, in nanoseconds since began
	pretends atomic.Int64 // see Pretend

	began    = time.Now()
	baseline = asleep()
)

// suspended is for how long the machine was suspended since the process began.
func suspended() time.Duration {
	now := int64(time.Since(began))
	if since := time.Duration(now - looked.Load()); since < 0 || since >= fresh {
		d := int64(asleep() - baseline + time.Duration(pretends.Load()))
		for old := known.Load(); d >= old+int64(least) && !known.CompareAndSwap(old, d); old = known.Load() { // it never falls
		}
		looked.Store(now) // last: whoever finds it new finds what was seen, too
	}
	return time.Duration(known.Load())
}

// Pretend has the machine have been suspended for d more. It is for tests.
func Pretend(d time.Duration) {
	pretends.Add(int64(d))
	looked.Store(int64(time.Since(began) - fresh))
}

// Now is the time.
func Now() time.Time { return time.Now().Add(suspended()) }

// Since is how long ago t was.
func Since(t time.Time) time.Duration { return Now().Sub(t) }

// Until is how long it is until t.
func Until(t time.Time) time.Duration { return t.Sub(Now()) }

// Plain is t by package time, if the machine is not suspended until then.
func Plain(t time.Time) time.Time { return t.Add(-suspended()) }

// Timer calls a function at a time.
type Timer struct {
	f       func()
	mu      sync.Mutex
	at      time.Time   // guarded by mu
	timer   *time.Timer // guarded by mu
	stopped bool        // guarded by mu
}

// AfterFunc calls f in a goroutine of its own at the given time, or within a second after the machine was resumed.
func AfterFunc(at time.Time, f func()) *Timer {
	t := &Timer{f: f, at: at}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = time.AfterFunc(t.next(), t.look)
	return t
}

// next is how long it is until the timer looks. The caller holds mu.
func (t *Timer) next() time.Duration {
	if !tells {
		return Until(t.at)
	}
	return min(Until(t.at), lookEvery)
}

func (t *Timer) look() {
	t.mu.Lock()
	next := t.next()
	due := next <= 0 && !t.stopped
	if next > 0 && !t.stopped {
		t.timer.Reset(next)
	}
	t.mu.Unlock()
	if due {
		t.f()
	}
}

// Reset has the timer call its function at another time, once more if it was called.
func (t *Timer) Reset(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at, t.stopped = at, false
	t.timer.Reset(t.next())
}

// Stop has the timer not call its function any more, unless that is under way.
func (t *Timer) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	t.timer.Stop()
}
