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

// channel is what releases notify on PostgreSQL, if somebody waits; see release.sql. The payload is
// since when the one has waited who has waited longest, and the name in hex.
const channel = "sqllock"

// deafPause is after how long who hears of releases looks all the same.
const subscribedPause = 250 * time.Millisecond

// ears hear of the names that are released on PostgreSQL, on one connection for all who wait in this
// process, which is opened when the first of them does. What is heard is a hint that may not come. Behind a pooler
// nobody listens.
type notifier struct {
	connect func(ctx context.Context) (driver.Conn, error) // nil: there is nothing to hear
	start   func(func()) error
	closing context.Context //nolint:containedctx // the Locker's
	pause   time.Duration   // after which who hears looks all the same

	mu           sync.Mutex
	waiting      map[string]chan int64 // guarded by mu: of each name that somebody waits for; has room for one
	running      bool                  // guarded by mu
	stop         func()                // guarded by mu: ends what runs
	isSubscribed bool                  // guarded by mu: it was heard that it hears
	unsupported  bool                  // guarded by mu: a pooler or another driver is between
	failed       time.Time             // guarded by mu: when it last ended
	crowded      time.Time             // guarded by mu: when the server was full
	quiet        time.Time             // guarded by mu: since when nobody waits
}

// listen returns where the releases of name will be heard of, each by since when the one has waited who has
// waited longest.
func (e *notifier) listen(name string) (heard <-chan int64, stop func()) {
	if e.connect == nil {
		return nil, func() {}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.waiting == nil {
		e.waiting = make(map[string]chan int64)
	}
	c := make(chan int64, 1) // one waits for a name at a time
	e.waiting[name] = c
	if !e.running && !e.unsupported && time.Since(e.failed) > time.Second && time.Since(e.crowded) > idleTime {
		e.running = e.start(e.run) == nil
	}
	return c, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.waiting[name] == c { // the turn may have gone on already, of one who left a claim behind
			delete(e.waiting, name)
		}
		e.quiet = time.Now()
	}
}

// hears reports whether releases are heard of.
func (e *notifier) subscribed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.isSubscribed
}

// run listens until the Locker is closed, the connection ends, or nobody needs it any more.
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

// begin has a connection listen. A pooler would give the session that does to others.
func (e *notifier) begin(ctx context.Context, dc driver.Conn) error {
	direct, err := isDirect(ctx, dc)
	if err == nil && !direct {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.unsupported = true
		return errUnsupportedNotify
	}
	for _, text := range []string{"LISTEN " + channel, "NOTIFY " + channel} { // the second is for itself
		if err == nil {
			err = execOn(ctx, dc, text)
		}
	}
	return err
}

var errUnsupportedNotify = errors.New("nothing is heard on this connection")

// giveUp ends listening for some time: the server is full, and who waits looks all the same.
func (e *notifier) giveUp() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.crowded = time.Now()
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
	default: // nobody waits for it, or has heard already
	}
}
