package lease

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/bound"
	"github.com/sqllock/sqllock/internal/hold"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// Held is a lock that a lease holds.
type Held struct {
	Hold   *hold.Hold
	Keeper *Keeper
	Name   string
	Grant
	MinHold  time.Duration // for how long the name stays taken after its acquisition, whatever is released
	Permit   bool          // it is a share or permit; such a lock has left the wait queue
	position position      // in the wait queue of the name
	lost     atomic.Bool   // the database no longer has it; see holding.isLost
	touched  atomic.Bool   // see touch
	attachments
}

// NewHeld returns the lock that was granted with token on ls to the attempt that has head.
func NewHeld(ctx context.Context, ls *Lease, name string, token int64, head *Head) *Held {
	now := time.Now()
	h := &Held{Keeper: ls.keeper, Name: name}
	h.at.Lease = ls
	h.Grant = Grant{Fence: token, Since: now, First: token, Token: token, Sent: now}
	h.position.head = head
	h.Hold = hold.New(ctx, name, h)
	return h
}

// attachments are the leases that a lock is attached to, or was.
type attachments struct {
	mu       sync.Mutex // is locked after the mu of a lease
	at       attachment // guarded by mu
	previous []*Lease   // guarded by mu: leases that it was attached to before
}

// attachment says which lease a lock is attached to. A lock only ever moves to a lease that it was never attached to
// before.
type attachment struct {
	Lease   *Lease
	pending *Lease // nil, or the lease that it is attached to if a move with an unknown outcome was carried out
}

// AttachedTo returns what the lock is attached to now.
func (a *attachments) AttachedTo() attachment {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at
}

// ends returns the leases that end the lock. The one that ends first does (I27).
func (s attachment) ends() []*Lease {
	if s.pending == nil {
		return []*Lease{s.Lease}
	}
	return []*Lease{s.Lease, s.pending}
}

// wasOnlyOn reports whether the lock was never moved from ls and is not being moved, and whether it is attached to ls.
func (a *attachments) wasOnlyOn(ls *Lease) (only, now bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at == attachment{Lease: ls} && len(a.previous) == 0, slices.Contains(a.at.ends(), ls)
}

// isDedicated reports whether a lock, which is no permit, has leases of its own: it has no position in the wait queue.
func (h *Held) isDedicated() bool { return h.position.head == nil }

// over returns why the lock is over, or nil.
func (h *Held) over() error { return context.Cause(h.Hold.Context()) }

// OverNow returns why the lock is over, or nil. If its deadline has passed while the process was stopped or the machine
// suspended, the lock ends here, before its timer comes to it (I5). It locks the mutexes of the leases.
func (h *Held) OverNow() error {
	for _, ls := range h.AttachedTo().ends() {
		ls.expire()
	}
	return h.over()
}

// touch says that a statement with the token of the row follows. The handoff that ends the lock then bumps that token, so
// the statement cannot come late and find the row of the next holder. If the lock is over, touch returns why, and the
// statement must not follow.
func (h *Held) touch() error {
	h.touched.Store(true)
	return h.OverNow()
}

// holding returns the lock's name as ls holds it.
func (h *Held) holding(ls *Lease) holding {
	return holding{Lease: ls, name: h.Name, token: h.Token, lock: h}
}

// heldKey is how a lease holds a name.
type heldKey struct {
	name   string
	token  int64
	permit bool
}

func (h *Held) key() heldKey { return heldKey{h.Name, h.Token, h.Permit} }

// row is what the table has of the lock on ls.
func (k heldKey) row(ls *Lease) store.Held {
	return store.Held{Name: k.name, Lease: ls.ID, Token: k.token, Permit: k.permit}
}

// rowIn returns the row of state that shows the lock on ls, if there is one. A permit is looked for among the permits only:
// after a failover the lease may have the whole name with the token of a permit that was forgotten.
func (k heldKey) rowIn(ls *Lease, state store.State) (row store.State, there bool) {
	rows := []store.State{state}
	if k.permit {
		rows = state.Permits
	}
	i := slices.IndexFunc(rows, func(row store.State) bool { return row.Token == k.token && bytes.Equal(row.LeaseID, ls.ID) })
	if i < 0 {
		return row, false
	}
	return rows[i], true
}

func keyOf(state store.State) heldKey { return heldKey{string(state.Name), state.Token, state.Permit} }

// check reads whether the table still says that h holds its name, and ends h if it does not (I20). If its lease is over
// there, others may take the name at any moment, and every lock of the lease ends. A late release may still free the name.
func (h *Held) check(ctx context.Context) error {
	for {
		at := h.AttachedTo()
		state, err := h.Keeper.Store.Read(ctx, h.Name)
		if err != nil {
			return err
		}
		if h.AttachedTo() != at { // it was moved, maybe after the read
			continue
		}
		for _, ls := range at.ends() {
			switch row, there := h.key().rowIn(ls, state); {
			case !there:
				continue
			case row.Gone:
				ls.finish(errEnded) //nolint:contextcheck // the locks have contexts of their own
			case !row.Live():
				ls.finish(errOutlived) //nolint:contextcheck // see above
			}
			return nil
		}
		h.mu.Lock()
		was := h.previous
		h.mu.Unlock()
		for _, ls := range was { // a failover forgot the move, and nobody else would free the name there
			if _, there := h.key().rowIn(ls, state); there {
				h.Hold.End(errTaken)
				h.leaveOrphans(0, ls)
			}
		}
		h.lose(errTaken)
		return nil
	}
}

var errTaken = fmt.Errorf("%w: the table does not name this holder any more: another one took it, it was released by force, or a failover forgot it", sqllock.ErrLost)

// leaveOrphans makes leases free the name by their ids, whatever its token, and with the minimum hold of a release.
// That is safe only while this lock has its position in the wait queue (I18). If the lock has left the queue, another
// goroutine may hold the name by the same lease id, and this lock was known to be over; leaveOrphans then reports
// false.
func (h *Held) leaveOrphans(keep time.Duration, leases ...*Lease) (mine bool) {
	if !h.position.use() {
		return false
	}
	defer h.position.letGo()
	for _, ls := range leases {
		ls.Orphans.leave(h.Name, keep)
	}
	return true
}

// lose ends a lock that the database no longer has.
func (h *Held) lose(cause error) {
	held := false
	for _, ls := range h.AttachedTo().ends() {
		held = ls.detach(h) || held
	}
	if held {
		h.lost.Store(true)
		h.Hold.End(cause)
		h.position.leave()
	}
}

// Sure returns how long the lock is sure to last without another renewal.
func (h *Held) Sure() time.Duration {
	left := time.Duration(math.MaxInt64)
	for _, ls := range h.AttachedTo().ends() {
		left = min(left, ls.sure())
	}
	return left
}

// Renew renews the lease now. If the lock was moved meanwhile, it renews the lease that the lock is on then.
func (h *Held) Renew(ctx context.Context) error {
	ctx, cancel := h.Keeper.Bound(ctx)
	defer cancel()
	for moved := true; moved && h.OverNow() == nil; { //nolint:contextcheck // the lock has a context of its own
		ls := h.AttachedTo().Lease
		err := ls.Renewals.Now(ctx)
		switch over := h.OverNow(); { //nolint:contextcheck // see above
		case over != nil:
			return over
		case err != nil:
			return h.Keeper.WithCause(ctx, err)
		}
		moved = h.AttachedTo().Lease != ls
	}
	return h.OverNow() //nolint:contextcheck // see above
}

// SetMetadata replaces the metadata of the name.
func (h *Held) SetMetadata(ctx context.Context, metadata []byte) error {
	return h.whenSettled(ctx, func(ctx context.Context, h settled) error {
		row := h.key().row(h.AttachedTo().Lease)
		held, err := dberr.Value(bound.WithValuesOf(h.Keeper.Closing, ctx), dberr.Retry, releaseTimeout, func(ctx context.Context) (bool, error) {
			return h.Keeper.Store.SetMetadata(ctx, row, metadata)
		})
		if err == nil && !held {
			h.lose(errTaken)
		}
		return err
	})
}

// Pin runs the statement of a guard (I13). It also tries the previous leases, because the transaction may see the name
// as it was before it was moved.
func (h *Held) Pin(ctx context.Context, tx store.Transaction) error {
	if err := h.touch(); err != nil { //nolint:contextcheck // the lock has a context of its own
		return err
	}
	for {
		h.mu.Lock()
		at, was := h.at, h.previous
		h.mu.Unlock()
		for _, ls := range append(at.ends(), was...) {
			if found, err := ls.store.Pin(ctx, tx, h.key().row(ls)); found || err != nil {
				return err
			}
		}
		if h.AttachedTo() == at {
			return errTaken
		}
	}
}

// Verify asks the database whether the lock still holds the name, and ends it if it does not. If the lock ends, it waits for
// no answer.
func (h *Held) Verify(ctx context.Context) error {
	ctx, cancel := h.Keeper.Bound(ctx)
	defer cancel()
	while, stop := bound.CancelWith(ctx, h.Hold.Context())
	defer stop()
	err := h.check(while)
	if over := h.OverNow(); err == nil || over != nil { //nolint:contextcheck // the lock has a context of its own
		return over
	}
	return h.Keeper.WithCause(ctx, err)
}
