package sqltest

import (
	"errors"
	"sync"
)

// memo has what this process has found or made, by key. Of several callers with the same key, one works and the others wait
// for it.
type memo[T any] struct {
	mu  sync.Mutex
	all map[string]*remembered[T] // guarded by mu
}

type remembered[T any] struct {
	mu      sync.Mutex // held while somebody works
	known   bool       // guarded by mu
	value   T          // guarded by mu
	failure error      // guarded by mu: of a migration, which is not tried again
}

// get returns what find has returned for this key, and calls it if it has not succeeded yet.
func (m *memo[T]) get(key string, find func() (T, error)) (T, error) {
	m.mu.Lock()
	r := m.all[key]
	if r == nil {
		if m.all == nil {
			m.all = make(map[string]*remembered[T])
		}
		r = &remembered[T]{}
		m.all[key] = r
	}
	m.mu.Unlock()

	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known || r.failure != nil {
		return r.value, r.failure
	}
	value, err := find()
	if err == nil {
		r.known, r.value = true, value
	}
	if failed := (migrationError{}); errors.As(err, &failed) {
		r.failure = err
	}
	return value, err
}

// migrationError is what a migration has failed with.
type migrationError struct{ error }

func (e migrationError) Unwrap() error { return e.error }
