package leasetable

import (
	"context"
	"database/sql/driver"
	"slices"
	"sync"
	"time"
)

const (
	connectTimeout = 15 * time.Second // bounds one dial; that of sessions is openTimeout in internal/session
	slowDial       = 3 * time.Second  // after which a caller who still waits has another dial started beside it
	readyTime      = 3 * time.Second  // for which a connection is kept that nobody waits for any more
	mostDials      = 6                // under way at once
)

// dialer opens connections under no caller's context: TCP, TLS and authentication together may take longer than one statement
// may. A dial whose caller has left serves the next caller.
type dialer struct {
	connect func(ctx context.Context) (driver.Conn, error)

	life    context.Context //nolint:containedctx // ends with close
	end     context.CancelFunc
	running sync.WaitGroup // added to under mu while life has not ended

	mu      sync.Mutex
	dialing []time.Time     // guarded by mu: start times of the dials under way
	waiting []chan<- dialed // guarded by mu: the callers, first come first served; each has room for its connection
	ready   []*dialed       // guarded by mu: connections whose callers had left
}

type dialed struct {
	conn driver.Conn
	err  error
}

func newDialer(connect func(context.Context) (driver.Conn, error)) *dialer {
	d := &dialer{connect: connect}
	d.life, d.end = context.WithCancel(context.Background())
	return d
}

// dial waits for a connection. There is a dial for each caller who waits; one that is slow does not count.
func (d *dialer) dial(ctx context.Context) (driver.Conn, error) {
	answer := make(chan dialed, 1)
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
	d.startDials() //nolint:contextcheck // dials outlast their callers
	d.mu.Unlock()

	slow := time.NewTicker(slowDial)
	defer slow.Stop()
	for {
		select {
		case got := <-answer:
			return got.conn, got.err
		case <-slow.C:
			d.mu.Lock()
			d.startDials() //nolint:contextcheck // see above
			d.mu.Unlock()
		case <-ctx.Done():
			if d.leave(answer) {
				return nil, ctx.Err()
			}
			got := <-answer // it came first
			return got.conn, got.err
		}
	}
}

// leave reports whether a caller was still waiting, and does no more.
func (d *dialer) leave(answer chan<- dialed) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.Index(d.waiting, answer)
	if i >= 0 {
		d.waiting = slices.Delete(d.waiting, i, i+1)
	}
	return i >= 0
}

// startDials starts a dial for each caller that has none which is not slow. The caller holds mu.
func (d *dialer) startDials() {
	now := time.Now()
	fresh := 0
	for _, began := range d.dialing {
		if now.Sub(began) < slowDial {
			fresh++
		}
	}
	for ; fresh < len(d.waiting) && len(d.dialing) < mostDials && d.life.Err() == nil; fresh++ {
		d.dialing = append(d.dialing, now)
		d.running.Go(func() { d.run(now) })
	}
}

// run opens a connection for the first caller who waits then, or keeps it ready for a while.
func (d *dialer) run(began time.Time) {
	ctx, cancel := context.WithTimeout(d.life, connectTimeout)
	defer cancel()
	conn, err := d.connect(ctx)

	got := &dialed{conn, err}
	d.mu.Lock()
	i := slices.Index(d.dialing, began)
	d.dialing = slices.Delete(d.dialing, i, i+1)
	spare := len(d.waiting) == 0 && err == nil
	switch {
	case spare:
		d.ready = append(d.ready, got)
	case len(d.waiting) > 0:
		d.waiting[0] <- *got
		d.waiting = slices.Delete(d.waiting, 0, 1)
		d.startDials() // for those whom mostDials held up
	}
	d.mu.Unlock()
	if !spare {
		return
	}

	timer := time.NewTimer(readyTime)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-d.life.Done():
	}
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

// close ends the dials under way, and closes what nobody took. A driver that does not end with its context is not waited for.
func (d *dialer) close() {
	d.mu.Lock()
	d.end()
	d.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		d.running.Wait()
		close(ended)
	}()
	timer := time.NewTimer(endTimeout)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
}
