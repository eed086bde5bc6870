package wait

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/conn"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/lease"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// Turns are the turns of a Locker, one for each name that it waits for (I36): see chapter 6 of docs/design.md. Of all processes
// that wait for a name, one has the turn, the head, which polls the lock row. The others stand in the server's queue, in
// slices. A turn decides nothing: each slice ends no later than the lease that its waiter saw.
type Turns struct {
	keeper *lease.Keeper

	mu     sync.Mutex
	of     map[string]*turn // guarded by mu
	resume time.Time        // guarded by mu: nobody stands in a queue until then
	noLong time.Time        // guarded by mu: no slice is a long one until then
}

// turn is the turn of one name, and the session that stands for it.
type turn struct {
	name    string
	busy    chan struct{} // has room for one: the goroutine that uses the session
	session store.Turn    // of that goroutine; nil: none is open

	used      time.Time     // guarded by the mu of Turns: when the session was last used
	slice     chan struct{} // guarded by the mu of Turns: closed at the end of the slice that is under way; nil: none is
	wanted    bool          // guarded by the mu of Turns: somebody waits for the name, or has acquired it
	ours      bool          // guarded by the mu of Turns
	owed      bool          // guarded by the mu of Turns: the session has the turn, and has to give it back
	contended bool          // guarded by the mu of Turns: another process had the turn when this one asked for it, now or just before
	refused   time.Time     // guarded by the mu of Turns: when another process last had it
	timer     *time.Timer   // guarded by the mu of Turns: gives back the turn of a lock that is held for long, or an unused session
}

const (
	slice     = 2 * time.Second            // of a wait, on average
	longSlice = conn.WorkIdleTime * 7 / 10 // of a wait that has taken longTime
	pingTurn  = 3 * time.Second            // after which the head shows the server that it lives; see store.OpenTurn

	// answerTime is for how long a waiter waits for the end of its slice after it was due. The server hangs then, or a
	// connection takes long, and the waiter has to look at the row.
	answerTime = time.Second
	// lookTime is for how long it waits for the end of an earlier slice before it looks again.
	lookTime = 500 * time.Millisecond

	// longTime is after how long a wait is a long one. Longer slices cost the server less.
	longTime = 12 * time.Second
	// noLongTime is for how long no slice is a long one after one has failed: perhaps a time limit of the connection is
	// shorter, such as readTimeout of MySQL's driver.
	noLongTime = time.Minute
	// noQueueTime is for how long nobody stands in a queue that does not let anybody wait.
	noQueueTime = time.Minute

	// contendedTime is for how long a turn that another process had is waited for at once: to try for it first mostly
	// fails then.
	contendedTime = time.Second
)

// NewTurns returns the turns of the Locker with these leases.
func NewTurns(k *lease.Keeper) *Turns { return &Turns{keeper: k, of: make(map[string]*turn)} }

var (
	errNoTurn = errors.New("there is no queue to stand in")
	errLate   = errors.New("the queue did not answer in time")
)

// Stand stands in the server's queue for the turn of a name, for at most d. It reports whether this process has the
// turn. An earlier slice may still be under way, because its waiter has left or the server is slow. Then Stand waits for
// that slice, but not for long. If ctx ends before, the session gives back what it gets, unless somebody else wants it by
// then.
func (ts *Turns) Stand(ctx context.Context, name string, d time.Duration) (ours bool, err error) {
	over, begun, ours := ts.enter(name, d) //nolint:contextcheck // a slice outlives its caller
	switch {
	case ours:
		return true, nil
	case over == nil:
		return false, errNoTurn
	}
	limit := min(d, lookTime)
	if begun {
		limit = d + answerTime
	}
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-over:
		return ts.Ours(name), nil
	case <-late.C:
		return false, errLate
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// enter begins a slice, unless one is under way or the turn is ours already. It returns a channel that is closed when the
// slice is over, or nil if there is no queue to stand in.
func (ts *Turns) enter(name string, d time.Duration) (over <-chan struct{}, begun, ours bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t, most := ts.of[name], ts.keeper.Store.MaxTurns()
	if most == 0 || time.Now().Before(ts.resume) || t == nil && len(ts.of) >= most {
		return nil, false, false
	}
	if t == nil {
		t = &turn{name: name, busy: make(chan struct{}, 1)}
		ts.of[name] = t
	}
	if !t.wanted && t.slice == nil {
		t.contended = time.Since(t.refused) < contendedTime
	}
	t.wanted = true
	if t.timer != nil {
		t.timer.Stop()
	}
	switch {
	case t.ours:
		return nil, false, true
	case t.slice != nil:
		return t.slice, false, false
	}
	return ts.begin(t, d), true, false
}

// begin begins a slice, and returns a channel that is closed when it is over. The caller holds mu.
func (ts *Turns) begin(t *turn, d time.Duration) <-chan struct{} {
	over := make(chan struct{})
	t.slice = over
	err := ts.keeper.Start(func() {
		defer func() { // also if a driver ends the goroutine
			ts.mu.Lock()
			defer ts.mu.Unlock()
			close(over)
			t.slice = nil
		}()
		ts.stand(t, d)
	})
	if err != nil { // the Locker is closed
		close(over)
	}
	return over
}

// Keep reports whether this process has the turn of a name. If so, it shows the server now and then that the session
// lives.
func (ts *Turns) Keep(name string) (ours bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.of[name]
	if t == nil || !t.ours {
		return false
	}
	if time.Since(t.used) > pingTurn {
		t.used = time.Now()
		_ = ts.keeper.Hand(func() { // a closed Locker has no sessions
			_ = ts.use(t, false, func(ctx context.Context) error { // after an error the turn is over
				return dberr.Once(ctx, dberr.AttemptTimeout, t.session.Ping)
			})
		})
	}
	return true
}

// Ours reports whether this process has the turn of a name.
func (ts *Turns) Ours(name string) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.of[name]
	return t != nil && t.ours
}

// stand is one slice. What it gets after its waiter has left it gives back.
func (ts *Turns) stand(t *turn, d time.Duration) {
	_ = ts.use(t, true, func(ctx context.Context) error {
		ts.mu.Lock()
		asked, wanted := t.contended, t.wanted
		ts.mu.Unlock()
		if !wanted {
			return nil
		}
		ours, err := false, error(nil)
		if !asked { // only who is refused knows that others want the name, too
			ours, err = t.session.Try(ctx, t.name)
		}
		if !ours && err == nil {
			ts.mu.Lock()
			t.contended = true
			if !asked {
				t.refused = time.Now()
			}
			ts.mu.Unlock()
			ours, err = t.session.Wait(ctx, t.name, d)
		}
		ts.mu.Lock()
		defer ts.mu.Unlock()
		t.used = time.Now()
		if err != nil && d > longSlice/2 {
			ts.noLong = time.Now().Add(noLongTime)
		}
		if ours {
			t.ours, t.owed = t.wanted, false
		}
		t.owed = t.owed || !t.wanted // it may have more than it was told of; see Turn.Wait
		return err
	})
}

// Hold notes that the name was acquired. It reports whether other processes wait for their turn. A name that is held
// for long gives back its turn, so that it needs no connection. Who acquired the name without its turn wants none any
// more, also not that of a slice that is still under way.
func (ts *Turns) Hold(name string) (contended bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.of[name]
	switch {
	case t == nil || !t.wanted:
		return false
	case !t.ours:
		return ts.leave(t)
	}
	ts.after(t, func() { ts.giveUp(t) })
	return t.contended
}

// Leave ends what Stand began, or Hold: this process no longer wants the name. It gives the turn back in the
// background, and reports whether other processes wait for it.
func (ts *Turns) Leave(name string) (contended bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.of[name]
	if t == nil || !t.wanted {
		return false
	}
	return ts.leave(t)
}

// leave is Leave. The caller holds mu.
func (ts *Turns) leave(t *turn) (contended bool) {
	contended = t.ours && t.contended
	t.wanted, t.owed, t.ours = false, t.owed || t.ours || t.contended, false // a refused session can have a seat; see Turn.Wait
	_ = ts.keeper.Hand(func() { ts.settle(t) })                              // a closed Locker has no sessions
	return contended
}

// GiveUp has nobody stand in a queue for IdleTime: the server has no connection left for others.
func (ts *Turns) GiveUp() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.resume = time.Now().Add(conn.IdleTime)
	for _, t := range ts.of {
		_ = ts.keeper.Hand(func() { ts.closeUnused(t) }) // a closed Locker has no sessions
	}
}

// Close closes the sessions. No goroutine uses them any more.
func (ts *Turns) Close() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, t := range ts.of {
		if t.timer != nil {
			t.timer.Stop()
		}
		if t.session != nil {
			t.session.Close()
		}
	}
}

// mayBeLong reports whether slices may be long ones.
func (ts *Turns) mayBeLong() bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return time.Now().After(ts.noLong)
}
