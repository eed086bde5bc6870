package leasetable

import (
	"context"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"
)

// channel is the channel that releases notify on PostgreSQL if another process waits; see release.sql. The payload is
// since when the longest waiter has waited, and the name in hex.
const channel = "sqllock"

// subscribedPause is how long a waiter that receives notifications pauses between polls.
const subscribedPause = 250 * time.Millisecond

// notifier receives the releases of names on PostgreSQL, on one connection for all waiters of this process. The
// connection is opened when the first of them begins to wait. A notification is a hint that may not come. Behind a
// pooler there are no notifications.
type notifier struct {
	connect func(ctx context.Context) (driver.Conn, error) // nil: the database sends no notifications
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
	if e.connect == nil {
		return nil, func() {}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.waiting == nil {
		e.waiting = make(map[string]chan int64)
	}
	c := make(chan int64, 1) // a name has one waiter at a time
	e.waiting[name] = c
	if !e.running && !e.unsupported && time.Since(e.failed) > time.Second && time.Since(e.full) > idleTime {
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
	connecting, connected := context.WithTimeout(ctx, connectTimeout)
	dc, err := e.connect(connecting)
	connected()
	if isFull(err) {
		e.giveUp()
	}
	if err != nil {
		return
	}
	defer dc.Close()
	if once(ctx, attemptTimeout, func(ctx context.Context) error { return e.begin(ctx, dc) }) != nil {
		return
	}
	wait := waiterOf(dc)
	for {
		waiting, stop := context.WithTimeout(ctx, idleTime)
		payload, err := wait(waiting)
		idle := waiting.Err() != nil
		stop()
		switch {
		case err == nil:
			e.receive(payload)
		case ctx.Err() != nil || !idle || e.unused():
			return
		}
	}
}

// begin makes a connection listen. It refuses to listen through a pooler, which would give the session that listens to
// other clients.
func (e *notifier) begin(ctx context.Context, dc driver.Conn) error {
	direct, err := isDirect(ctx, dc)
	if err == nil && !direct {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.unsupported = true
		return errUnsupportedNotify
	}
	for _, text := range []string{"LISTEN " + channel, "NOTIFY " + channel} { // the second notifies this connection itself
		if err == nil {
			err = execOn(ctx, dc, text)
		}
	}
	return err
}

var errUnsupportedNotify = errors.New("nothing is heard on this connection")

// giveUp ends listening for idleTime: the server has no connection left, and waiters poll anyway.
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
	return len(e.waiting) == 0 && time.Since(e.quiet) > idleTime
}

func (e *notifier) receive(payload string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.isSubscribed = true
	number, text, _ := strings.Cut(payload, " ")
	since, err := strconv.ParseInt(number, 10, 64)
	name, errName := hex.DecodeString(text)
	if err != nil || errName != nil {
		return
	}
	select {
	case e.waiting[string(name)] <- since:
	default: // there is no waiter, or it was notified already
	}
}
