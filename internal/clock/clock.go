// Package clock is the clock for the deadlines of locks. Unlike Go's own, it also runs while the machine is suspended,
// where the system can tell (Linux).
//
// Its times are those of package time, moved ahead by how long the machine was suspended since the process began. They
// can be compared with each other. For anything else, such as the deadline of a context, Plain moves them back.
package clock

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// lookEvery is how often a timer checks whether the machine was suspended: timers stand still meanwhile.
	lookEvery = time.Second
	// fresh is how long the last measurement is used, unless the wall clock has moved ahead or back meanwhile.
	fresh = 100 * time.Millisecond
	// least is the shortest suspension that counts: the clocks are not read at the same moment.
	least = 50 * time.Millisecond
)

var (
	known    atomic.Int64 // how long the machine was suspended, in nanoseconds
	moved    atomic.Int64 // what wallMoved returned at the last measurement
	looked   atomic.Int64 // when that was, in nanoseconds since began
	pretends atomic.Int64 // see Pretend

	began    = time.Now()
	baseline = asleep()
)

// suspended returns how long the machine was suspended since the process began. To measure that takes two system calls,
// which are spared as long as a reading of the time shows that there was no suspension: a suspension moves the wall clock
// ahead of the monotonic clock.
func suspended() time.Duration {
	now := time.Now()
	since, wall := now.Sub(began), wallMoved(now)
	age := since - time.Duration(looked.Load())
	if age < 0 || age >= fresh || (wall-time.Duration(moved.Load())).Abs() >= least {
		d := int64(asleep() - baseline + time.Duration(pretends.Load()))
		for old := known.Load(); d >= old+int64(least) && !known.CompareAndSwap(old, d); old = known.Load() { // known never falls
		}
		moved.Store(int64(wall)) // after known: a goroutine that finds these also finds the new known
		looked.Store(int64(since))
	}
	return time.Duration(known.Load())
}

// wallMoved returns how much more time has passed by the wall clock than by the monotonic clock since began: for how long
// the machine was suspended, and how far the wall clock was set.
func wallMoved(now time.Time) time.Duration {
	return now.Round(0).Sub(began.Round(0)) - now.Sub(began) + time.Duration(pretends.Load())
}

// Pretend makes it look as if the machine had been suspended for d more. It is for tests.
func Pretend(d time.Duration) { pretends.Add(int64(d)) }

// Now returns the time (I5).
func Now() time.Time { return time.Now().Add(suspended()) }

// Since returns how long ago t was.
func Since(t time.Time) time.Duration { return Now().Sub(t) }

// Until returns how long it is until t.
func Until(t time.Time) time.Duration { return t.Sub(Now()) }

// Plain returns t as a time of package time, valid if the machine is not suspended until then.
func Plain(t time.Time) time.Time { return t.Add(-suspended()) }

// Timer calls a function at a given time.
type Timer struct {
	f       func()
	mu      sync.Mutex
	at      time.Time   // guarded by mu
	timer   *time.Timer // guarded by mu
	stopped bool        // guarded by mu
}

// AfterFunc calls f in its own goroutine at the given time, or within a second after the machine was resumed (I5).
func AfterFunc(at time.Time, f func()) *Timer {
	t := &Timer{f: f, at: at}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = time.AfterFunc(t.next(), t.look)
	return t
}

// next returns how long it is until the timer checks again. The caller holds mu.
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

// Reset makes the timer call its function at another time, once more if it was called already.
func (t *Timer) Reset(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at, t.stopped = at, false
	t.timer.Reset(t.next())
}

// Stop keeps the timer from calling its function, unless the call is under way.
func (t *Timer) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	t.timer.Stop()
}
