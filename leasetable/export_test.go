package leasetable

import (
	"context"
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

// Share makes a sharing whose statements, for one name each, are run by f, and returns what asks for one.
func Share(f func(name string)) (ask func(name string) (done <-chan struct{})) {
	frees, takes := new(sharing), new(sharing)
	newCrowd(frees, takes)
	takes.hand = func(lead func()) error {
		go lead()
		return nil
	}
	takes.within = time.Hour
	takes.one = func(_ context.Context, p *part) (taken, error) {
		f(p.name)
		return taken{}, nil
	}
	return func(name string) <-chan struct{} {
		p := &part{name: name}
		takes.join(context.Background(), p)
		return p.done
	}
}

// TakeMany takes those of the names that are free for kept's lease, by a statement for many.
func TakeMany(ctx context.Context, kept *Lease, names ...string) (tokens map[string]int64, err error) {
	parts := make([]*part, len(names))
	for i, name := range names {
		parts[i] = &part{name: name, id: kept.at.term.id, metadata: []byte{}}
	}
	return tokensOf(kept.locker.store.takeMany(ctx, parts))
}

// FreeMany frees those of the names that kept's lease holds with these tokens.
func FreeMany(ctx context.Context, kept *Lease, tokens map[string]int64) (freed map[string]int64, err error) {
	var parts []*part
	for name, token := range tokens {
		parts = append(parts, &part{name: name, id: kept.at.term.id, token: token})
	}
	return tokensOf(kept.locker.store.freeMany(ctx, parts))
}

func tokensOf(all map[string]taken, err error) (map[string]int64, error) {
	tokens := make(map[string]int64)
	for name, t := range all {
		tokens[name] = t.Token
	}
	return tokens, err
}
