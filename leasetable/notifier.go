package leasetable

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/conn"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// subscribedPause is how long a waiter that receives notifications pauses between polls.
const subscribedPause = 250 * time.Millisecond

// notifier receives the releases of names on PostgreSQL, on one connection for all waiters of this process. The
// connection is opened when the first of them begins to wait. A notification is a hint that may not come. Behind a
// pooler there are no notifications.
type notifier struct {
	store   *store.Store // nil: the database sends no notifications
	start   func(func()) error
	closing context.Context //nolint:containedctx // the Locker's
	pause   time.Duration   // between the polls of a waiter that receives notifications

	mu           sync.Mutex
	waiting      map[string]chan int64 // guarded by mu: the channel of each name that has a waiter; has room for one
	running      bool                  // guarded by mu
	stop         func()                // guarded by mu: ends run
	isSubscribed bool                  // guarded by mu: a notification has arrived on this connection
	unsupported  bool                  // guarded by mu: a pooler or another driver is in between
	failed       time.Time             // guarded by mu: when run last ended
	full         time.Time             // guarded by mu: when the server last had no connection left
	quiet        time.Time             // guarded by mu: when a waiter last left
}

// listen returns a channel that receives the releases of name: for each, since when the longest waiter has waited. stop
// ends that.
func (e *notifier) listen(name string) (heard <-chan int64, stop func()) {
	if e.store == nil {
		return nil, func() {}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.waiting == nil {
		e.waiting = make(map[string]chan int64)
	}
	c := make(chan int64, 1) // a name has one waiter at a time
	e.waiting[name] = c
	if !e.running && !e.unsupported && time.Since(e.failed) > time.Second && time.Since(e.full) > conn.IdleTime {
		e.running = e.start(e.run) == nil
	}
	return c, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.waiting[name] == c { // else the next waiter of the queue has replaced it, after an abandoned claim
			delete(e.waiting, name)
		}
		e.quiet = time.Now()
	}
}

// subscribed reports whether notifications arrive.
func (e *notifier) subscribed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.isSubscribed
}

// run listens until the Locker is closed, the connection ends, or no waiter needs it any more.
func (e *notifier) run() {
	ctx, cancel := context.WithCancel(e.closing)
	defer cancel()
	e.mu.Lock()
	e.stop = cancel
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.running, e.isSubscribed, e.failed = false, false, time.Now()
	}()
	releases, err := e.store.Subscribe(ctx)
	switch {
	case dberr.IsFull(err):
		e.giveUp()
	case errors.Is(err, conn.ErrUnsupportedNotify):
		e.mu.Lock()
		e.unsupported = true
		e.mu.Unlock()
	}
	if err != nil {
		return
	}
	defer releases.Close()
	for {
		waiting, stop := context.WithTimeout(ctx, conn.IdleTime)
		name, since, err := releases.Next(waiting)
		idle := waiting.Err() != nil
		stop()
		switch {
		case err == nil:
			e.receive(name, since)
		case ctx.Err() != nil || !idle || e.unused():
			return
		}
	}
}

// giveUp ends listening for IdleTime: the server has no connection left, and waiters poll anyway.
func (e *notifier) giveUp() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.full = time.Now()
	if e.stop != nil {
		e.stop()
	}
}

func (e *notifier) unused() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.waiting) == 0 && time.Since(e.quiet) > conn.IdleTime
}

func (e *notifier) receive(name string, since int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.isSubscribed = true
	select {
	case e.waiting[name] <- since:
	default: // there is no waiter, or it was notified already
	}
}
