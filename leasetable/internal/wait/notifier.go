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
func (n *Notifier) Listen(name string) (heard <-chan int64, stop func()) {
	if !n.keeper.Store.MayNotify() {
		return nil, func() {}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.waiting == nil {
		n.waiting = make(map[string]chan int64)
	}
	c := make(chan int64, 1) // a name has one waiter at a time
	n.waiting[name] = c
	if !n.running && !n.unsupported && time.Since(n.failed) > time.Second && time.Since(n.full) > conn.IdleTime {
		n.running = n.keeper.Start(n.run) == nil
	}
	return c, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.waiting[name] == c { // else the next waiter of the queue has replaced it, after an abandoned claim
			delete(n.waiting, name)
		}
		n.quiet = time.Now()
	}
}

// Subscribed reports whether notifications arrive.
func (n *Notifier) Subscribed() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.isSubscribed
}

// run listens until the Locker is closed, the connection ends, or no waiter needs it any more.
func (n *Notifier) run() {
	ctx, cancel := context.WithCancel(n.keeper.Closing)
	defer cancel()
	n.mu.Lock()
	n.stop = cancel
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.running, n.isSubscribed, n.failed = false, false, time.Now()
	}()
	releases, err := n.keeper.Store.Subscribe(ctx)
	switch {
	case dberr.IsFull(err):
		n.GiveUp()
	case errors.Is(err, conn.ErrUnsupportedNotify):
		n.mu.Lock()
		n.unsupported = true
		n.mu.Unlock()
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
			n.receive(name, since)
		case ctx.Err() != nil || !idle || n.unused():
			return
		}
	}
}

// GiveUp ends listening for IdleTime: the server has no connection left, and waiters poll anyway.
func (n *Notifier) GiveUp() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.full = time.Now()
	if n.stop != nil {
		n.stop()
	}
}

// Waits reports whether a waiter for the name listens, or need not because there are no notifications.
func (n *Notifier) Waits(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.waiting[name] != nil || !n.keeper.Store.MayNotify()
}

func (n *Notifier) unused() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.waiting) == 0 && time.Since(n.quiet) > conn.IdleTime
}

func (n *Notifier) receive(name string, since int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.isSubscribed = true
	select {
	case n.waiting[name] <- since:
	default: // there is no waiter, or it was notified already
	}
}
