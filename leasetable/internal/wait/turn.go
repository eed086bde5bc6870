package wait

import (
	"context"
	"errors"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/conn"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// turn is the turn of one name, and the session that stands for it.
type turn struct {
	*Turns
	name    string
	busy    chan struct{} // has room for one: the goroutine that uses the session
	session store.Turn    // of that goroutine; nil: none is open

	used      time.Time     // guarded by mu: when the session was last used
	slice     chan struct{} // guarded by mu: closed at the end of the slice that is under way; nil: none is
	wanted    bool          // guarded by mu: somebody waits for the name, or has acquired it
	ours      bool          // guarded by mu
	owed      bool          // guarded by mu: the session has the turn, and has to give it back
	contended bool          // guarded by mu: another process had the turn when this one asked for it, now or just before
	refused   time.Time     // guarded by mu: when another process last had it
	timer     *time.Timer   // guarded by mu: gives back the turn of a lock that is held for long, or an unused session
}

// begin begins a slice, and returns a channel that is closed when it is over. The caller holds mu.
func (t *turn) begin(d time.Duration) <-chan struct{} {
	over := make(chan struct{})
	t.slice = over
	err := t.keeper.Start(func() {
		defer func() { // also if a driver ends the goroutine
			t.mu.Lock()
			defer t.mu.Unlock()
			close(over)
			t.slice = nil
		}()
		t.stand(d)
	})
	if err != nil { // the Locker is closed
		close(over)
	}
	return over
}

// stand is one slice. What it gets after its waiter has left it gives back.
func (t *turn) stand(d time.Duration) {
	_ = t.use(true, func(ctx context.Context) error {
		t.mu.Lock()
		asked, wanted := t.contended, t.wanted
		t.mu.Unlock()
		if !wanted {
			return nil
		}
		ours, err := false, error(nil)
		if !asked { // only who is refused knows that others want the name, too
			ours, err = t.session.Try(ctx, t.name)
		}
		if !ours && err == nil {
			t.mu.Lock()
			t.contended = true
			if !asked {
				t.refused = time.Now()
			}
			t.mu.Unlock()
			ours, err = t.session.Wait(ctx, t.name, d)
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.used = time.Now()
		if err != nil && d > longSlice/2 {
			t.noLong = time.Now().Add(noLongTime)
		}
		if ours {
			t.ours, t.owed = t.wanted, false
		}
		t.owed = t.owed || !t.wanted // it may have more than it was told of; see Turn.Wait
		return err
	})
}

// use runs f on the session of a turn, and gives back before and after what the session owes. If there is none, it opens one
// for a slice, which somebody will close; otherwise there is nothing to do. If f is nil, it only gives back. After an error the
// session is closed, and with it the turn ends. f may take as long as a slice.
func (t *turn) use(forSlice bool, f func(ctx context.Context) error) (err error) {
	ctx, cancel := context.WithTimeout(t.keeper.Closing, conn.ConnectTimeout+2*longSlice)
	defer cancel()
	select {
	case t.busy <- struct{}{}:
		defer func() { <-t.busy }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() {
		if err != nil {
			t.drop(err)
		}
	}()
	if t.session == nil {
		t.isOwed() // what it owed has ended with it
		if !forSlice {
			return nil
		}
		if t.session, err = t.keeper.Store.OpenTurn(ctx); err != nil {
			return err
		}
	}
	if err := t.giveBack(ctx); err != nil || f == nil {
		return err
	}
	if err := f(ctx); err != nil {
		return err
	}
	return t.giveBack(ctx)
}

// giveBack gives back the turn if the session owes it.
func (t *turn) giveBack(ctx context.Context) error {
	if !t.isOwed() {
		return nil
	}
	return dberr.Once(ctx, dberr.AttemptTimeout, t.session.Leave)
}

// isOwed reports whether the session owes the turn. From then on it does not.
func (t *turn) isOwed() (owed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	owed, t.owed = t.owed, false
	return owed
}

// drop closes the session of a turn. The caller is busy with it.
func (t *turn) drop(err error) {
	if t.session != nil {
		t.session.Close()
		t.session = nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ours, t.owed = false, false
	rest := time.Second
	switch {
	case dberr.IsFull(err):
		rest = conn.IdleTime
	case errors.Is(err, store.ErrEarly):
		rest = noQueueTime
	}
	if err != nil {
		t.resume = time.Now().Add(rest)
	}
}

// after calls f if nobody waits for the name within IdleTime. The caller holds mu.
func (t *turn) after(f func()) {
	if t.timer != nil {
		t.timer.Stop()
	}
	t.timer = time.AfterFunc(conn.IdleTime, func() { _ = t.keeper.Hand(f) }) // a closed Locker has no sessions
}

// giveUp gives back the turn of a name that is held on.
func (t *turn) giveUp() {
	t.mu.Lock()
	t.owed, t.ours = t.owed || t.ours, false
	t.mu.Unlock()
	t.settle()
}

// settle gives back what the session owes, and closes it if nobody needs it within IdleTime.
func (t *turn) settle() {
	_ = t.use(false, nil)
	t.closeLater()
}

// closeLater closes the session of a turn if nobody needs it within IdleTime.
func (t *turn) closeLater() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ours { // a lock that was acquired meanwhile gives back its turn itself; see Hold
		t.after(t.closeUnused)
	}
}

// closeUnused closes the session of a turn that is not ours, and forgets it: another name may have a session instead. A
// slice that is about to begin needs it.
func (t *turn) closeUnused() {
	select {
	case t.busy <- struct{}{}:
		defer func() { <-t.busy }()
	default: // it is in use
		t.closeLater()
		return
	}
	t.mu.Lock()
	unused := !t.ours && !t.owed && t.slice == nil
	if unused && t.of[t.name] == t {
		delete(t.of, t.name)
	}
	t.mu.Unlock()
	if unused {
		t.drop(nil)
	}
}

// leave is Turns.Leave. The caller holds mu.
func (t *turn) leave() (contended bool) {
	contended = t.ours && t.contended
	t.wanted, t.owed, t.ours = false, t.owed || t.ours || t.contended, false // a refused session can have a seat; see Turn.Wait
	_ = t.keeper.Hand(t.settle)                                              // a closed Locker has no sessions
	return contended
}
