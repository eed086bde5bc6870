package wait

import (
	"context"
	"errors"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/conn"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// use runs f on the session of a turn, and gives back before and after what the session owes. If there is none, it opens one
// for a slice, which somebody will close; otherwise there is nothing to do. If f is nil, it only gives back. After an error the
// session is closed, and with it the turn ends. f may take as long as a slice.
func (ts *Turns) use(t *turn, forSlice bool, f func(ctx context.Context) error) (err error) {
	ctx, cancel := context.WithTimeout(ts.keeper.Closing, conn.ConnectTimeout+2*longSlice)
	defer cancel()
	select {
	case t.busy <- struct{}{}:
		defer func() { <-t.busy }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() {
		if err != nil {
			ts.drop(t, err)
		}
	}()
	if t.session == nil {
		ts.isOwed(t) // what it owed has ended with it
		if !forSlice {
			return nil
		}
		if t.session, err = ts.keeper.Store.OpenTurn(ctx); err != nil {
			return err
		}
	}
	if err := ts.giveBack(ctx, t); err != nil || f == nil {
		return err
	}
	if err := f(ctx); err != nil {
		return err
	}
	return ts.giveBack(ctx, t)
}

// giveBack gives back the turn if the session owes it.
func (ts *Turns) giveBack(ctx context.Context, t *turn) error {
	if !ts.isOwed(t) {
		return nil
	}
	return dberr.Once(ctx, dberr.AttemptTimeout, t.session.Leave)
}

// isOwed reports whether the session owes the turn. From then on it does not.
func (ts *Turns) isOwed(t *turn) (owed bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	owed, t.owed = t.owed, false
	return owed
}

// drop closes the session of a turn. The caller is busy with it.
func (ts *Turns) drop(t *turn, err error) {
	if t.session != nil {
		t.session.Close()
		t.session = nil
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t.ours, t.owed = false, false
	rest := time.Second
	switch {
	case dberr.IsFull(err):
		rest = conn.IdleTime
	case errors.Is(err, store.ErrEarly):
		rest = noQueueTime
	}
	if err != nil {
		ts.resume = time.Now().Add(rest)
	}
}

// after calls f if nobody waits for the name within IdleTime. The caller holds mu.
func (ts *Turns) after(t *turn, f func()) {
	if t.timer != nil {
		t.timer.Stop()
	}
	t.timer = time.AfterFunc(conn.IdleTime, func() { _ = ts.keeper.Hand(f) }) // a closed Locker has no sessions
}

// giveUp gives back the turn of a name that is held on.
func (ts *Turns) giveUp(t *turn) {
	ts.mu.Lock()
	t.owed, t.ours = t.owed || t.ours, false
	ts.mu.Unlock()
	ts.settle(t)
}

// settle gives back what the session owes, and closes it if nobody needs it within IdleTime.
func (ts *Turns) settle(t *turn) {
	_ = ts.use(t, false, nil)
	ts.closeLater(t)
}

// closeLater closes the session of a turn if nobody needs it within IdleTime.
func (ts *Turns) closeLater(t *turn) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if !t.ours { // a lock that was acquired meanwhile gives back its turn itself; see Hold
		ts.after(t, func() { ts.closeUnused(t) })
	}
}

// closeUnused closes the session of a turn that is not ours, and forgets it: another name may have a session instead. A
// slice that is about to begin needs it.
func (ts *Turns) closeUnused(t *turn) {
	select {
	case t.busy <- struct{}{}:
		defer func() { <-t.busy }()
	default: // it is in use
		ts.closeLater(t)
		return
	}
	ts.mu.Lock()
	unused := !t.ours && !t.owed && t.slice == nil
	if unused && ts.of[t.name] == t {
		delete(ts.of, t.name)
	}
	ts.mu.Unlock()
	if unused {
		ts.drop(t, nil)
	}
}
