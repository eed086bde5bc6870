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
		t = &turn{Turns: ts, name: name, busy: make(chan struct{}, 1)}
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
	return t.begin(d), true, false
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
			_ = t.use(false, func(ctx context.Context) error { // after an error the turn is over
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
		return t.leave()
	}
	t.after(t.giveUp)
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
	return t.leave()
}

// GiveUp has nobody stand in a queue for IdleTime: the server has no connection left for others.
func (ts *Turns) GiveUp() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.resume = time.Now().Add(conn.IdleTime)
	for _, t := range ts.of {
		_ = ts.keeper.Hand(t.closeUnused) // a closed Locker has no sessions
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
