package leasetable

import (
	"strings"
	"time"
)

// Waiting is how many goroutines are in line for name.
func Waiting(l *Locker, name string) int { return l.turns.Waiting(name) }

// Spoil has names look free on MySQL that are held, and the server refuse the statement that reads which of them were
// taken for many.
func Spoil(l *Locker) {
	l.store.texts[freeMany] = strings.Replace(l.store.texts[freeMany], "lease_id IS NULL", "token > 0", 1)
	l.store.texts[takenMany] = "SELECT name, token FROM sqllock_nowhere WHERE name = ?"
}

// LookNoMore has who hears of releases not look for them as well, for an hour.
func LookNoMore(l *Locker) { l.ears.pause = time.Hour }

// Hears reports whether l hears of releases.
func Hears(l *Locker) bool { return l.ears.hears() }

// Listen is what a goroutine does that polls for name.
func Listen(l *Locker, name string) (stop func()) {
	_, stop = l.ears.listen(name)
	return stop
}

// Waits reports whether a goroutine of l polls for name.
func Waits(l *Locker, name string) bool {
	l.ears.mu.Lock()
	defer l.ears.mu.Unlock()
	_, waits := l.ears.waiting[name]
	return waits || l.ears.connect == nil
}

// Strays is how many places a lost answer may have left taken.
func Strays(l *Locker) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for t := range l.all {
		t.mu.Lock()
		n += len(t.strayPlaces)
		t.mu.Unlock()
	}
	return n
}
