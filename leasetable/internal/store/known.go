package store

import (
	"context"
	"sync"

	"github.com/sqllock/sqllock/schema"
)

// knownTokens caches the latest tokens of names. A statement that takes a cached name need not return the token: it is
// the next one. The cache is advisory, because the statements compare the tokens.
type knownTokens struct {
	mu     sync.Mutex
	tokens map[string]int64 // guarded by mu
}

const maxKnown = 4000

// remember caches the tokens of names that were freed and had no known waiter.
func (k *knownTokens) remember(names map[string]Result) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.makeRoom()
	for name, got := range names {
		if !got.HasWaiter {
			k.tokens[name] = got.Token
		}
	}
}

// note caches the token of a name.
func (k *knownTokens) note(name string, token int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.makeRoom()
	k.tokens[name] = token
}

// makeRoom clears the cache if it is full. The caller holds mu.
func (k *knownTokens) makeRoom() {
	if k.tokens == nil || len(k.tokens) > maxKnown {
		k.tokens = make(map[string]int64)
	}
}

// recall returns copies of reqs with their tokens if all tokens are known, and otherwise reqs. In both cases it forgets
// the tokens.
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

// forget removes the token of a name and returns it, or 0 if it is not known.
func (k *knownTokens) forget(name string) int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	token := k.tokens[name]
	delete(k.tokens, name)
	return token
}

// Peek returns the cached token of a name, or 0.
func (k *knownTokens) Peek(name string) int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.tokens[name]
}

// On PostgreSQL, an answer with a row accounts for half of a Locker's overhead over bare statements, in the server and
// the driver. On MariaDB, finding out whether a name is free or has a waiter costs as much. So a name is taken again,
// and freed again, by cheaper statements, as long as no other process is seen to use it.

// hasKnownToken reports whether the database has these statements. On MySQL they would wait for a locked row.
func (s *Store) hasKnownToken() bool { return s.dialect == schema.Postgres || s.OnMariaDB() }

// acquireKnown takes a name that still has the token it had when this process freed it. The result is zero if it did
// not take the name.
func (s *Store) acquireKnown(ctx context.Context, req *Request) (got Result, err error) {
	if !s.hasKnownToken() || req.Since != 0 {
		return Result{}, nil
	}
	token := s.Known.forget(req.Name)
	if token == 0 {
		return Result{}, nil
	}
	return s.changeKnown(ctx, acquireKnown, req.Name, token+1, req.ID, req.Metadata, []byte(req.Name), token)
}

// releaseKnown frees a name that acquireKnown took and that no other process waits for. The result is zero if it did
// not free the name.
func (s *Store) releaseKnown(ctx context.Context, req *Request) (got Result, err error) {
	if !s.hasKnownToken() || req.MinHold > 0 || s.Known.forget(req.Name) != req.Token {
		return Result{}, nil
	}
	st := releaseKnown
	if s.commit(req) != nil {
		st = releaseKnownAsync
	}
	return s.changeKnown(ctx, st, req.Name, req.Token, []byte(req.Name), req.ID, req.Token)
}

// changeKnown runs a statement that leaves the name with this token, or changes nothing; then the result is zero.
func (s *Store) changeKnown(ctx context.Context, st Statement, name string, token int64, args ...any) (Result, error) {
	var rows int64
	err := s.Work.Replicated(func() (err error) {
		rows, err = s.change(ctx, s.Work, st, args...)
		return err
	})
	if err != nil || rows == 0 {
		return Result{}, err
	}
	s.Known.note(name, token)
	return Result{Token: token}, nil
}

// noteReleased caches the token of a name that was freed if the name can be taken again at once: it has no minimum
// hold, and no known waiter.
func (s *Store) noteReleased(req *Request, wanted bool) {
	if s.hasKnownToken() && req.MinHold == 0 && !wanted {
		s.Known.note(req.Name, req.Token)
	}
}
