package session

import (
	"sync"
	"time"
)

// contendedTime is for how long a key that another process held is waited for at once: to try for it first costs a
// statement, and mostly fails. A wait for a free key costs no more round trips than a try, but a session.
const contendedTime = time.Second

// contended has the keys that were refused lately, since another process held them.
type contended[K comparable] struct {
	mu   sync.Mutex
	seen map[K]time.Time // guarded by mu
}

// note notes that another process holds a key.
func (c *contended[K]) note(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.seen) >= 100 {
		c.seen = nil // forgetting costs some statements
	}
	if c.seen == nil {
		c.seen = make(map[K]time.Time)
	}
	c.seen[key] = time.Now()
}

// lately reports whether another process held a key less than contendedTime ago.
func (c *contended[K]) lately(key K) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, found := c.seen[key]
	if found && time.Since(at) >= contendedTime {
		delete(c.seen, key)
		found = false
	}
	return found
}
