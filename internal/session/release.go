package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock"
)

// A lock that goroutines of this process wait for goes from one to the next without a statement.
// After so many times, or so long, the server is asked whether another process waits, so that
// it gets its turn.
const (
	maxPasses = 8
	passTime  = 20 * time.Millisecond
)

// baton is what comes with the turn of a key.
type handoff[K comparable] struct {
	s         *session[K] // the session that holds the key, not a share of it; nil if none here does
	since     time.Time   // when the server granted it
	passes    int         // how often it was handed over since
	contended bool        // another process was seen to hold the key
}

// release gives a lock on, to the next in line here or to the server. It is not abandoned
// halfway: it ends when the server has answered, or when the session has ended and with it the
// lock.
func (l *Locker[K]) release(lock *lock[K]) error {
	if !lock.s.detach(lock) {
		return lock.s.lost()
	}
	owned, err := l.handOff(lock.want, handoff[K]{s: lock.s, since: lock.since, passes: lock.passes})
	switch {
	case errors.Is(err, sqllock.ErrClosed):
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", sqllock.ErrLost, err)
	case !owned:
		return fmt.Errorf("%w: the server says that this session did not hold it", sqllock.ErrLost)
	}
	return nil
}

// hand passes the turn of a key that its session holds: with the key to the next goroutine in
// line, or, now and then and when there is none, after the key was given back to the server. A
// share is always given back.
func (l *Locker[K]) handOff(w Want[K], b handoff[K]) (owned bool, err error) {
	s, key := b.s, w.Key
	if w.Shared {
		return l.giveBack(w, s)
	}
	if b.passes < maxPasses && time.Since(b.since) < passTime && s.isTrusted() {
		b.passes++
		if l.queue.Pass(key, b) {
			return true, nil
		}
	}
	if l.queue.Waiting(key) == 0 {
		return l.giveBack(w, s)
	}
	// One statement gives the key back, to whoever waits for it elsewhere, and takes it again
	// if nobody does.
	give, take := &call[K]{op: w.give()}, &call[K]{op: w.take()}
	err = s.do(context.Background(), give, take)
	if err == nil && take.op.Done {
		if !l.queue.Pass(key, handoff[K]{s: s, since: time.Now()}) {
			_, _ = l.handOff(w, handoff[K]{s: s}) // nobody waits any more; an error ends what nobody has
		}
		return give.op.Done, nil
	}
	l.setFree(s)
	if err != nil || take.refused != nil || !l.queue.Pass(key, handoff[K]{contended: true}) {
		l.queue.Done(key)
	}
	if err != nil { // give may still be written to
		return false, err
	}
	return give.op.Done, nil
}

// giveBack gives a key back to the server, and then up its turn.
func (l *Locker[K]) giveBack(w Want[K], s *session[K]) (owned bool, err error) {
	give := &call[K]{op: w.give()}
	err = s.do(context.Background(), give)
	l.setFree(s)
	l.queue.Done(w.Key)
	if err != nil { // give may still be written to
		return false, err
	}
	return give.op.Done, nil
}

// decline passes on a turn that came to a caller who has left.
func (l *Locker[K]) decline(key K, b handoff[K]) {
	if b.s == nil {
		l.queue.Done(key)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing.Err() != nil {
		l.queue.Done(key)
		return
	}
	l.running.Go(func() { _, _ = l.handOff(Want[K]{Key: key}, b) }) // an error ended the session, and with it the lock
}
