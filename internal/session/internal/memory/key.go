package memory

import (
	"slices"
	"time"
)

// key is a lock on the server. Its fields are guarded by the server's mu.
type key struct {
	owners []*Session
	shared bool // the owners share it
	queue  []*request
	freed  time.Time // when it had no owner any more
}

// request is a place in the queue of a key.
type request struct {
	session *Session
	shared  bool
	since   time.Time
	granted chan struct{} // closed when the session has the key
}

// key returns the key of a name. The caller holds mu.
func (s *Server) key(name string) *key {
	k := s.keys[name]
	if k == nil {
		k = &key{}
		s.keys[name] = k
	}
	return k
}

// admits reports whether a request fits in beside the owners, and beside the requests in front of it.
func (k *key) admits(shared bool, inFront []*request) bool {
	if len(k.owners) > 0 && (!shared || !k.shared) {
		return false
	}
	return !slices.ContainsFunc(inFront, func(r *request) bool { return !shared || !r.shared })
}

// grant gives a key to a session. The caller holds mu.
func (s *Server) grant(name string, k *key, e *Session, shared bool) {
	k.owners, k.shared = append(k.owners, e), shared
	e.keys[name]++
	s.changed(Change{What: Granted, Session: e, Key: name})
}

// WriterSince returns since when a session has waited for the whole of a key, or now. The caller has locked the server.
func (s *Server) WriterSince(name string) time.Time {
	since := time.Now()
	for _, r := range s.key(name).queue {
		if !r.shared && r.since.Before(since) {
			since = r.since
		}
	}
	return since
}

// advance gives a key to the requests in its queue that fit in, in their order. The caller holds mu.
func (s *Server) advance(name string, k *key) {
	for i := 0; i < len(k.queue); {
		r := k.queue[i]
		if !k.admits(r.shared, k.queue[:i]) {
			i++
			continue
		}
		k.queue = slices.Delete(k.queue, i, i+1)
		s.grant(name, k, r.session, r.shared)
		close(r.granted)
	}
}

// take takes a key if nobody holds it or waits for it. The caller holds mu.
func (s *Server) take(e *Session, name string, shared bool) bool {
	k := s.key(name)
	switch {
	case e.keys[name] > 0:
		e.keys[name]++
		s.changed(Change{What: Again, Session: e, Key: name})
	case k.admits(shared, k.queue):
		s.grant(name, k, e, shared)
	default:
		return false
	}
	return true
}

// give gives a key back, and reports whether the session had it. The caller holds mu.
func (s *Server) give(e *Session, name string) bool {
	if e.keys[name] == 0 {
		return false
	}
	if e.keys[name]--; e.keys[name] > 0 {
		return true
	}
	delete(e.keys, name)
	s.changed(Change{What: GivenBack, Session: e, Key: name})
	s.free(e, name)
	return true
}

// free removes an owner of a key. The caller holds mu.
func (s *Server) free(e *Session, name string) {
	k := s.keys[name]
	if k.owners = slices.DeleteFunc(k.owners, func(o *Session) bool { return o == e }); len(k.owners) == 0 {
		k.freed = time.Now()
	}
	s.advance(name, k)
}

// leave removes the session's request from the queue of a key. The caller holds mu.
func (s *Server) leave(e *Session, name string) {
	k := s.keys[name]
	k.queue = slices.DeleteFunc(k.queue, func(r *request) bool { return r.session == e })
	s.advance(name, k)
}
