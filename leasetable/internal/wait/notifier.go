package wait

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/conn"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/lease"
)

// subscribedPause is how long a waiter that receives notifications pauses between polls.
const subscribedPause = 250 * time.Millisecond

// Notifier receives the releases of names on PostgreSQL, on one connection for all waiters of this process. The
// connection is opened when the first of them begins to wait. A notification is a hint that may not come. Behind a
// pooler there are no notifications.
type Notifier struct {
	keeper *lease.Keeper
	Pause  time.Duration // between the polls of a waiter that receives notifications

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

// NewNotifier returns a notifier for the Locker with these leases.
func NewNotifier(k *lease.Keeper) *Notifier { return &Notifier{keeper: k, Pause: subscribedPause} }

// Listen returns a channel that receives the releases of name: for each, since when the longest waiter has waited. stop
// ends that.
func (e *Notifier) Listen(name string) (heard <-chan int64, stop func()) {
	if !e.keeper.Store.MayNotify() {
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
		e.running = e.keeper.Start(e.run) == nil
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

// Subscribed reports whether notifications arrive.
func (e *Notifier) Subscribed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.isSubscribed
}

// run listens until the Locker is closed, the connection ends, or no waiter needs it any more.
func (e *Notifier) run() {
	ctx, cancel := context.WithCancel(e.keeper.Closing)
	defer cancel()
	e.mu.Lock()
	e.stop = cancel
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.running, e.isSubscribed, e.failed = false, false, time.Now()
	}()
	releases, err := e.keeper.Store.Subscribe(ctx)
	switch {
	case dberr.IsFull(err):
		e.GiveUp()
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

// GiveUp ends listening for IdleTime: the server has no connection left, and waiters poll anyway.
func (e *Notifier) GiveUp() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.full = time.Now()
	if e.stop != nil {
		e.stop()
	}
}

// Waits reports whether a waiter for the name listens, or need not because there are no notifications.
func (e *Notifier) Waits(name string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.waiting[name] != nil || !e.keeper.Store.MayNotify()
}

func (e *Notifier) unused() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.waiting) == 0 && time.Since(e.quiet) > conn.IdleTime
}

func (e *Notifier) receive(name string, since int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.isSubscribed = true
	select {
	case e.waiting[name] <- since:
	default: // there is no waiter, or it was notified already
	}
}
