package store

import "sync"

// knownTokens caches the latest tokens of names that were released together on MariaDB, so that a statement that acquires
// them need not return the next ones. The cache is advisory, because the statement compares the tokens.
type knownTokens struct {
	mu     sync.Mutex
	tokens map[string]int64 // guarded by mu
}

// maxKnown bounds the cache: it is cleared when it is full.
const maxKnown = 4000

// remember caches the tokens of names that were freed and had no known waiter.
func (k *knownTokens) remember(names map[string]Result) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.tokens == nil || len(k.tokens) > maxKnown {
		k.tokens = make(map[string]int64)
	}
	for name, got := range names {
		if !got.HasWaiter {
			k.tokens[name] = got.Token
		}
	}
}

// recall returns copies of reqs with their tokens if all tokens are known, and otherwise reqs (I37). In both cases it
// forgets the tokens.
func (k *knownTokens) recall(reqs []*Request) (with []*Request, known bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	with = make([]*Request, len(reqs))
	known = true
	for i, req := range reqs {
		q := *req
		q.Token = k.tokens[req.Name]
		with[i] = &q
		known = known && q.Token != 0
		delete(k.tokens, req.Name)
	}
	if !known {
		return reqs, false
	}
	return with, true
}
