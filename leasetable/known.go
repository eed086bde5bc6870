package leasetable

import (
	"context"
	"sync"

	"github.com/sqllock/sqllock/schema"
)

// knownTokens remembers the tokens that names had lately: who takes a name again, with the next one, need not be told which. It
// decides nothing: the statements compare them.
type knownTokens struct {
	mu     sync.Mutex
	tokens map[string]int64 // guarded by mu
}

const maxKnown = 4 * maxBatch

// remember notes the tokens of names that were freed and that nobody was seen to wait for.
func (k *knownTokens) remember(names map[string]result) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.makeRoom()
	for name, got := range names {
		if !got.HasWaiter {
			k.tokens[name] = got.Token
		}
	}
}

// note notes the token of a name.
func (k *knownTokens) note(name string, token int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.makeRoom()
	k.tokens[name] = token
}

// makeRoom forgets all if there are many. The caller has mu.
func (k *knownTokens) makeRoom() {
	if k.tokens == nil || len(k.tokens) > maxKnown {
		k.tokens = make(map[string]int64)
	}
}

// recall returns parts with their tokens, if all are known, and forgets those.
func (k *knownTokens) recall(reqs []*request) (with []*request, known bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	with = make([]*request, len(reqs))
	known = true
	for i, req := range reqs {
		q := *req
		q.token = k.tokens[req.name]
		with[i] = &q
		known = known && q.token != 0
		delete(k.tokens, req.name)
	}
	if !known {
		return reqs, false
	}
	return with, true
}

// forget returns the token of a name, or 0 if it is not known, and forgets it.
func (k *knownTokens) forget(name string) int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	token := k.tokens[name]
	delete(k.tokens, name)
	return token
}

// On PostgreSQL an answer with a row costs the server and its driver half of what a Locker does more than bare statements do, and on
// MariaDB what may be free or wanted costs as much. So a name is taken again, and freed again, by statements that do less, as
// long as no other process is seen to use it.

// knows reports whether the database has such statements. On MySQL they would wait for a row that somebody has locked.
func (s *store) hasKnownToken() bool { return s.dialect == schema.Postgres || s.work.mariadb.Load() }

// acquireKnown takes a name that has the token it had when this process freed it.
func (s *store) acquireKnown(ctx context.Context, req *request) (got result, err error) {
	if !s.hasKnownToken() || req.since != 0 {
		return result{}, nil
	}
	token := s.known.forget(req.name)
	if token == 0 {
		return result{}, nil
	}
	return s.changeKnown(ctx, acquireKnown, req.name, token+1, req.id, req.metadata, []byte(req.name), token)
}

// releaseKnown frees a name that was taken by acquireKnown and that nobody waits for.
func (s *store) releaseKnown(ctx context.Context, req *request) (got result, err error) {
	if !s.hasKnownToken() || req.minHold > 0 || s.known.forget(req.name) != req.token {
		return result{}, nil
	}
	st := releaseKnown
	if s.commit(req) != nil {
		st = releaseKnownAsync
	}
	return s.changeKnown(ctx, st, req.name, req.token, []byte(req.name), req.id, req.token)
}

// quietly runs a statement that leaves a name with this token, or does nothing.
func (s *store) changeKnown(ctx context.Context, st statement, name string, token int64, args ...any) (result, error) {
	var rows int64
	err := s.work.replicated(func() (err error) {
		rows, err = s.change(ctx, &s.work, st, args...)
		return err
	})
	if err != nil || rows == 0 {
		return result{}, err
	}
	s.known.note(name, token)
	return result{Token: token}, nil
}

// noteFreed notes the token of a name that was freed, if it can be taken again at once: it is not kept, and nobody was seen to wait for it.
func (s *store) noteReleased(req *request, wanted bool) {
	if s.hasKnownToken() && req.minHold == 0 && !wanted {
		s.known.note(req.name, req.token)
	}
}
