package conn

import (
	"context"
	"database/sql/driver"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock/internal/backoff"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
)

// ConnectTimeout bounds one dial, and how long a caller waits for the first connection.
const ConnectTimeout = 15 * time.Second // for sessions it is OpenTimeout in internal/session

const (
	slowDial      = 3 * time.Second  // after which a caller that still waits has another dial started beside it
	readyTime     = 3 * time.Second  // for which a connection is kept that no caller waits for
	renewableTime = 20 * time.Second // the same for a connection that the next renewal will need
	mostDials     = 6                // under way at once
)

// CloseTimeout is how long a Locker that is being closed tries to reach the database.
const CloseTimeout = 2 * time.Second

// dialer opens connections under no caller's context: TCP, TLS and authentication together may take longer than one
// statement may. A dial whose caller has left serves the next caller.
type dialer struct {
	connect func(ctx context.Context) (driver.Conn, error)
	hurry   func() time.Duration // replaces slowDial if it is less; nil or 0: no hurry
	rest    time.Duration        // for which a connection is kept that no caller waits for

	life    context.Context //nolint:containedctx // ends with close
	end     context.CancelFunc
	running sync.WaitGroup // added to under mu while life has not ended
	took    atomic.Int64   // how many ns the last dial took that succeeded

	mu      sync.Mutex
	dialing []time.Time     // guarded by mu: start times of the dials under way; see forgetHung
	waiting []chan<- dialed // guarded by mu: the waiting callers, first come first served; each channel has room for its connection
	ready   []*dialed       // guarded by mu: connections whose callers had left
	hung    int             // guarded by mu: how many dials go on that are not under way any more
}

type dialed struct {
	conn driver.Conn
	err  error
}

func newDialer(connect func(context.Context) (driver.Conn, error)) *dialer {
	d := &dialer{connect: connect, rest: readyTime}
	d.life, d.end = context.WithCancel(context.Background())
	return d
}

// dial waits for a connection. Each waiting caller has a dial under way; a slow dial does not count.
func (d *dialer) dial(ctx context.Context) (driver.Conn, error) {
	answer := make(chan dialed, 1)
	pause := d.slow()
	d.mu.Lock()
	if d.life.Err() != nil {
		d.mu.Unlock()
		return nil, driver.ErrBadConn
	}
	if n := len(d.ready); n > 0 {
		got := d.ready[n-1]
		d.ready = d.ready[:n-1]
		d.mu.Unlock()
		return got.conn, nil
	}
	d.waiting = append(d.waiting, answer)
	d.startDials(pause) //nolint:contextcheck // dials outlast their callers
	d.mu.Unlock()

	slow := time.NewTicker(pause)
	defer slow.Stop()
	for {
		select {
		case got := <-answer:
			return got.conn, got.err
		case <-slow.C:
			d.mu.Lock()
			d.startDials(pause) //nolint:contextcheck // see above
			d.mu.Unlock()
		case <-ctx.Done():
			if d.leave(answer) {
				return nil, ctx.Err()
			}
			got := <-answer // the connection came before ctx ended
			return got.conn, got.err
		}
	}
}

// leave removes a caller, and reports whether it was still waiting.
func (d *dialer) leave(answer chan<- dialed) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.Index(d.waiting, answer)
	if i >= 0 {
		d.waiting = slices.Delete(d.waiting, i, i+1)
	}
	return i >= 0
}

// slow is how long a dial may take before another one is started beside it: slowDial at most and, in a hurry, less,
// but longer than the last dial took.
func (d *dialer) slow() time.Duration {
	if d.hurry != nil {
		if hurry := d.hurry(); hurry > 0 {
			return min(slowDial, max(hurry, 2*d.lastTook()))
		}
	}
	return slowDial
}

// lastTook is how long the last dial took that succeeded.
func (d *dialer) lastTook() time.Duration { return time.Duration(d.took.Load()) }

// startDials starts a dial for each caller that has no dial, or only a slow one. The more dials are under way, the
// longer each may take before it counts as slow: more dials do not help a server that is slow because it is busy. The
// caller holds mu.
func (d *dialer) startDials(slow time.Duration) {
	now := time.Now()
	d.forgetHung(now)
	fresh := 0
	for i, began := range d.dialing {
		if now.Sub(began) < slow<<i {
			fresh++
		}
	}
	for ; fresh < len(d.waiting) && len(d.dialing) < mostDials && d.life.Err() == nil; fresh++ {
		d.start(now)
	}
}

// forgetHung has dials that should have ended not count as under way: a driver may not end with its context. While there are
// many of those, they are forgotten after a minute, so that they do not pile up. The caller holds mu.
func (d *dialer) forgetHung(now time.Time) {
	before := len(d.dialing)
	limit := ConnectTimeout << min(d.hung/mostDials, 2)
	d.dialing = slices.DeleteFunc(d.dialing, func(began time.Time) bool { return now.Sub(began) > limit })
	d.hung += before - len(d.dialing)
}

// start starts a dial. The caller holds mu.
func (d *dialer) start(now time.Time) {
	d.dialing = append(d.dialing, now)
	d.running.Go(func() { d.run(now) })
}

// prepare starts a dial for a future caller, unless there is a connection, or a dial under way, that no caller waits
// for.
func (d *dialer) prepare() {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	d.forgetHung(now)
	if len(d.dialing) <= len(d.waiting) && len(d.ready) == 0 && len(d.dialing) < mostDials && d.life.Err() == nil {
		d.start(now)
	}
}

// hasReady reports whether there is a connection for the next caller.
func (d *dialer) hasReady() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.ready) > 0
}

// isAwaited reports whether a caller waits for a connection.
func (d *dialer) isAwaited() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.waiting) > 0
}

// errUnreturned is the error of a dial that ends its goroutine, as a dial function of the user may.
var errUnreturned = &dberr.Error{Err: errors.New("connecting did not return"), OutcomeKnown: true, Transient: true}

// run opens a connection.
func (d *dialer) run(began time.Time) {
	ctx, cancel := context.WithTimeout(d.life, ConnectTimeout)
	defer cancel()
	got := &dialed{err: errUnreturned}
	defer func() { d.deliver(began, got) }()
	got.conn, got.err = d.connect(ctx)
}

// deliver gives what a dial returned to the caller that has waited longest by then, or keeps it ready for a while.
func (d *dialer) deliver(began time.Time, got *dialed) {
	conn, err, slow := got.conn, got.err, d.slow()
	d.mu.Lock()
	i := slices.Index(d.dialing, began)
	if i < 0 { // it was forgotten: its server may be another one than that of today
		d.hung--
		d.mu.Unlock()
		if err == nil {
			_ = conn.Close() // nobody has used it
		}
		return
	}
	d.dialing = slices.Delete(d.dialing, i, i+1)
	if err == nil {
		d.took.Store(int64(time.Since(began)))
	}
	spare := len(d.waiting) == 0 && err == nil
	switch {
	case spare:
		d.ready = append(d.ready, got)
	case len(d.waiting) > 0:
		d.waiting[0] <- *got
		d.waiting = slices.Delete(d.waiting, 0, 1)
		d.startDials(slow) // for the callers that mostDials held up
	}
	d.mu.Unlock()
	if !spare {
		return
	}

	_ = backoff.Sleep(d.life, d.rest)
	d.mu.Lock()
	i = slices.Index(d.ready, got)
	if i >= 0 {
		d.ready = slices.Delete(d.ready, i, i+1)
	}
	d.mu.Unlock()
	if i >= 0 {
		_ = conn.Close() // nobody has used it
	}
}

// drop closes the connections that no caller took.
func (d *dialer) drop() {
	d.mu.Lock()
	ready := d.ready
	d.ready = nil
	d.mu.Unlock()
	for _, got := range ready {
		_ = got.conn.Close() // nobody has used it
	}
}

// close ends the dials under way, and closes the connections that no caller took. It waits for them for at most
// CloseTimeout, because a driver may not end with its context.
func (d *dialer) close() {
	d.mu.Lock()
	d.end()
	d.mu.Unlock()
	waiting, ended := context.WithTimeout(context.Background(), CloseTimeout)
	go func() {
		d.running.Wait()
		ended()
	}()
	<-waiting.Done()
}
