package leasetable

import (
	"context"
	"database/sql/driver"
	"slices"
	"sync"
	"time"
)

// connectTimeout bounds the opening of one connection.
const connectTimeout = 15 * time.Second

// slowDial is after how long another connection is tried for beside one that is being opened, for a caller who asks.
const slowDial = attemptTimeout

// dialer opens connections under no caller's context: TCP, TLS and authentication together may take longer than one statement may,
// and what is under way when its caller leaves is the next one's.
type dialer struct {
	connect func(ctx context.Context) (driver.Conn, error)

	life    context.Context //nolint:containedctx // ends with close
	end     context.CancelFunc
	running sync.WaitGroup // added to under mu while life has not ended

	mu      sync.Mutex
	dialing []time.Time     // guarded by mu: since when each connection is being opened that no caller has
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

// dial returns a connection that was or is being opened, and opens another one if there are none, or all are slow.
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
	now := time.Now()
	soon := 0
	for _, began := range d.dialing {
		if now.Sub(began) < slowDial {
			soon++
		}
	}
	if soon < len(d.waiting) {
		d.dialing = append(d.dialing, now)
		d.running.Go(func() { d.run(now) }) //nolint:contextcheck // it outlasts its caller
	}
	d.mu.Unlock()

	select {
	case got := <-answer:
		return got.conn, got.err
	case <-ctx.Done():
	}
	d.mu.Lock()
	i := slices.Index(d.waiting, chan<- dialed(answer))
	if i >= 0 {
		d.waiting = slices.Delete(d.waiting, i, i+1)
	}
	d.mu.Unlock()
	if i >= 0 {
		return nil, ctx.Err()
	}
	got := <-answer // it came first
	return got.conn, got.err
}

// run opens a connection for the first caller who waits then, or keeps it ready for a while.
func (d *dialer) run(began time.Time) {
	ctx, cancel := context.WithTimeout(d.life, connectTimeout)
	defer cancel()
	conn, err := d.connect(ctx)

	d.mu.Lock()
	i := slices.Index(d.dialing, began)
	d.dialing = slices.Delete(d.dialing, i, i+1)
	switch {
	case len(d.waiting) > 0:
		d.waiting[0] <- dialed{conn, err}
		d.waiting = slices.Delete(d.waiting, 0, 1)
		d.mu.Unlock()
		return
	case err != nil:
		d.mu.Unlock()
		return
	}
	got := &dialed{conn: conn}
	d.ready = append(d.ready, got)
	d.mu.Unlock()

	timer := time.NewTimer(connectTimeout)
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

// close ends what is being opened, and closes what nobody took.
func (d *dialer) close() {
	d.mu.Lock()
	d.end()
	d.mu.Unlock()
	d.running.Wait()
}
