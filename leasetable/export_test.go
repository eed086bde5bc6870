package leasetable

// Waiting is how many goroutines are in line for name.
func Waiting(l *Locker, name string) int { return l.turns.Waiting(name) }

// Spoil has the server refuse the statement that reads, on MySQL, which names were taken for many.
func Spoil(l *Locker) {
	l.store.texts[taken] = "SELECT name, token FROM sqllock_nowhere WHERE name = ?"
}
