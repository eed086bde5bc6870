package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/waitqueue"
)

// Goroutines of this process hand a lock from one to the next without a statement. After so many handoffs, or so long,
// the server is asked whether another process waits, so that it gets the lock.
const (
	maxPasses = 8
	passTime  = 20 * time.Millisecond
)

// handoff is what the head of a key's wait queue hands to the next waiter.
type handoff[K comparable] struct {
	s         *session[K] // the session that holds the key exclusively; nil if none here does
	since     time.Time   // when the server granted it
	passes    int         // the number of handoffs since
	contended bool        // another process was seen to hold the key
}

// Free implements hold.Backend. It hands a lock to the next waiter here, or gives it back to the server. It is not
// abandoned halfway: it ends when the server has answered, or when the session, and the lock with it, has ended.
func (k *lock[K]) Free(context.Context) error {
	if !k.s.detach(k) {
		return k.s.lost
	}
	owned, err := k.l.handOff(k.want, handoff[K]{s: k.s, since: k.since, passes: k.passes}) //nolint:contextcheck // it is not abandoned halfway
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

// handOff leaves the wait queue of a key that its session holds. It hands the key to the next waiter or, now and then
// and when there is none, gives the key back to the server (I45, I46). A share is always given back.
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
	// One statement gives the key back, to a waiter elsewhere, and takes it again if there is none.
	give, take := &call[K]{op: w.give()}, &call[K]{op: w.take()}
	err = atHead(&l.queue, key, func() error { return s.do(context.Background(), give, take) })
	if err == nil && take.op.Done {
		if !l.queue.Pass(key, handoff[K]{s: s, since: time.Now()}) {
			_, _ = l.handOff(w, handoff[K]{s: s}) // nobody waits any more; an error ends a key that nobody holds
		}
		return give.op.Done, nil
	}
	l.park(s)
	if err != nil || take.refused != nil || !l.queue.Pass(key, handoff[K]{contended: true}) {
		l.queue.Done(key)
	}
	if err != nil { // give may still be written to
		return false, err
	}
	return give.op.Done, nil
}

// giveBack gives a key back to the server, and then leaves its wait queue.
func (l *Locker[K]) giveBack(w Want[K], s *session[K]) (owned bool, err error) {
	give := &call[K]{op: w.give()}
	err = atHead(&l.queue, w.Key, func() error { return s.do(context.Background(), give) })
	l.park(s)
	l.queue.Done(w.Key)
	if err != nil { // give may still be written to
		return false, err
	}
	return give.op.Done, nil
}

// atHead calls f for the head of a key's wait queue. It leaves the queue if f does not return: user code that f calls, such
// as a driver's hook, may panic.
func atHead[K comparable](queue *waitqueue.Queue[K, handoff[K], bool], key K, f func() error) error {
	returned := false
	defer func() {
		if !returned {
			queue.Done(key)
		}
	}()
	err := f()
	returned = true
	return err
}

// decline passes on what was handed to a caller that has left.
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
