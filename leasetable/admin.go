package leasetable

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/lockname"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// Info is the state of a name in the tables.
type Info struct {
	Name  string
	Token int64 // the highest token given for the name; that of its holder may be lower. 0: the name was never acquired
	Held  bool  // by a lease that has not expired, or kept after its release

	// Expired says that nobody has released the name and that its lease has expired: the holder was killed, was cut
	// off or has lost the name, and nobody has acquired it since. A name that is neither Held nor Expired is free: it
	// was released, or its lease row is gone. Close of a Locker deletes its lease rows, Purge deletes expired ones,
	// and so does a process that begins to take over a dead holder's names. The tables do not show which of these
	// happened.
	Expired bool

	// Taken is when the name was last acquired, by the database's clock; zero: never. If one holder had the name
	// alone, and the name is free with a Token higher by one and an unchanged Taken, it was released by force.
	Taken time.Time

	// Holder is the holder of the name, or the last one if the name is Expired. It is zero if the name is free. While
	// the name is kept after its release (WithHoldAtLeast), only Token, Since, Until and Metadata are known.
	Holder sqllock.Holder

	// Holders are all holders of the name, in the order of their tokens; the first of them is Holder. There are
	// several only if the name is Shared. It is empty if the name is Expired: Holder is then the last one.
	Holders []sqllock.Holder
	Shared  bool // its holders have shares or permits (WithShared, WithLimit)
	Limit   int  // how many permits there are, with WithLimit; 0: any number of holders

	// WaiterSince is since when the process that has waited longest for the name waits, by the database's clock. It
	// is known only for a name that one holder has alone. It is zero if no waiter is known, and can lag by some
	// seconds.
	WaiterSince time.Time
}

// ListOption narrows what List returns. With several of them a name has to meet all.
type ListOption func(*listing)

// listing is what the options of a List ask for. A program cannot name it, so a later release may filter in the database.
type listing struct{ conditions []func(Info) bool }

// meets reports whether a name meets all conditions.
func (l listing) meets(i Info) bool {
	return !slices.ContainsFunc(l.conditions, func(meets func(Info) bool) bool { return !meets(i) })
}

// Only omits names whose Info does not meet the condition. It is for conditions that no other option has: this process
// reads all names that begin with the prefix, and omits those.
func Only(condition func(Info) bool) ListOption {
	return func(l *listing) { l.conditions = append(l.conditions, condition) }
}

// OnlyHeld omits names that are not held.
func OnlyHeld() ListOption { return Only(func(i Info) bool { return i.Held }) }

// OnlyExpired omits all names except those of dead holders that nobody has taken over yet.
func OnlyExpired() ListOption { return Only(func(i Info) bool { return i.Expired }) }

// OnlyOwner omits names whose Holder is not owner ([WithOwner]).
func OnlyOwner(owner string) ListOption {
	owner = truncate(owner)
	return Only(func(i Info) bool { return i.Holder != (sqllock.Holder{}) && i.Holder.Owner == owner })
}

// Inspect returns the state of name, which may never have been acquired. The options of an acquisition change
// nothing; an option of another backend is an error.
func (l *Locker) Inspect(ctx context.Context, name string, opts ...sqllock.Option) (Info, error) {
	state, err := l.inspect(ctx, name, opts...)
	if err != nil {
		return Info{}, err
	}
	return infoOf(name, state), nil
}

// List returns the names that begin with prefix, in the order of their bytes: held names, names of expired leases and
// free names, unless options narrow that. It reads all names that begin with prefix, a thousand at a time, so the
// result is not a snapshot.
func (l *Locker) List(ctx context.Context, prefix string, only ...ListOption) ([]Info, error) {
	const page = 1000
	last := prefix + strings.Repeat("\xff", store.MaxName)
	var listed listing
	for _, opt := range only {
		opt(&listed)
	}
	var infos []Info
	for from := prefix; ; {
		seen, err := ask(ctx, l, "list", prefix, func(ctx context.Context) ([]store.State, error) {
			return l.keeper.Store.List(ctx, from, last, page)
		})
		if err != nil {
			return nil, err
		}
		together, err := l.listTogether(ctx, prefix, seen)
		if err != nil {
			return nil, err
		}
		for _, s := range seen {
			s.Permits = together[string(s.Name)]
			if info := infoOf(string(s.Name), s); listed.meets(info) {
				infos = append(infos, info)
			}
		}
		if len(seen) < page {
			return infos, nil
		}
		from = string(seen[page-1].Name) + "\x00" // the lowest name that can follow
	}
}

// infoOf returns the Info of a state.
func infoOf(name string, s store.State) Info {
	info := Info{Name: name, Token: s.Token, Held: s.Taken(), Expired: s.LeaseID != nil && !s.Gone && !s.Taken()}
	if info.Held || info.Expired {
		info.Holder = s.Holder()
	}
	if s.AcquiredUS != 0 {
		info.Taken = store.Time(s.AcquiredUS)
	}
	if s.WaiterUS != 0 && !s.Limit.Valid {
		info.WaiterSince = store.Time(s.WaiterUS)
	}
	together := s.Together()
	for _, holder := range together {
		info.Holders = append(info.Holders, holder.Holder())
	}
	if info.Shared, info.Limit = len(together) > 0, store.LimitOf(together); info.Held && !info.Shared {
		info.Holders = []sqllock.Holder{info.Holder}
	}
	return info
}

// listTogether reads the holders of shares and permits of the names in seen.
func (l *Locker) listTogether(ctx context.Context, prefix string, seen []store.State) (by map[string][]store.State, err error) {
	if !slices.ContainsFunc(seen, func(s store.State) bool { return s.Limit.Valid }) {
		return nil, nil
	}
	permits, err := ask(ctx, l, "list", prefix, func(ctx context.Context) ([]store.State, error) {
		return l.keeper.Store.ListPermits(ctx, seen[0].Name, seen[len(seen)-1].Name)
	})
	by = make(map[string][]store.State)
	for _, p := range permits {
		by[string(p.Name)] = append(by[string(p.Name)], p)
	}
	return by, err
}

// ForceOption narrows what ForceRelease releases.
type ForceOption func(*forcing)

// forcing is what the options of a ForceRelease ask for.
type forcing struct {
	conditional bool
	token       int64
}

// IfToken has ForceRelease free the name only if its token, or the highest one of those who hold it together, is still the
// given one; [Info] has both. Otherwise somebody may have acquired the name since, and keeps it: errors.As finds
// a *sqllock.HeldError.
func IfToken(token int64) ForceOption {
	return func(f *forcing) { f.conditional, f.token = true, token }
}

// latest returns the highest token of those who hold a name together, or 0.
func latest(state store.State) (token int64) {
	for _, p := range state.Together() {
		token = max(token, p.Token)
	}
	return token
}

// ForceRelease frees name regardless of its holder, and returns the state before. All holders of its shares or
// permits lose it. If the name was released, or never acquired, ForceRelease does nothing. Otherwise it bumps the
// token, also if the name is free because its lease row is gone. A holder's context ends with sqllock.ErrLost at the
// holder's next renewal, within a third of its TTL. Until then the old holder, or a goroutine to which its process
// hands the name, and the next one may both be at work. Only a resource that compares tokens, or a guarded
// transaction, is safe. After an error the name may have been freed, if the connection broke or ctx ended. The outcome is
// logged at Warn, or at Info if there was nothing to free.
func (l *Locker) ForceRelease(ctx context.Context, name string, only ...ForceOption) (was Info, err error) {
	was, freed, err := l.forceRelease(ctx, name, only)
	l.events.Forced(ctx, "forced release of a lock", name, was.Holder, freed, err)
	return was, err
}

// forceRelease is ForceRelease without the log. It reports whether there was something to free.
func (l *Locker) forceRelease(ctx context.Context, name string, only []ForceOption) (was Info, freed bool, err error) {
	const op = "force the release of"
	if err := lockname.Check(name); err != nil {
		return Info{}, false, &sqllock.OpError{Op: op, Name: name, Err: err}
	}
	var f forcing
	for _, opt := range only {
		opt(&f)
	}
	was, err = ask(ctx, l, op, name, func(ctx context.Context) (was Info, err error) {
		if err := l.keeper.Store.Accepts(ctx); err != nil {
			return Info{}, err
		}
		for freed = false; !freed; { // another session may acquire or release it meanwhile
			state, err := l.keeper.Store.Read(ctx, name)
			if err != nil {
				return Info{}, err
			}
			was = infoOf(name, state)
			switch {
			case state.LeaseID == nil && !state.Taken() && len(state.Permits) == 0:
				return was, nil
			case f.conditional && state.Token != f.token && (f.token == 0 || latest(state) != f.token):
				return Info{}, fmt.Errorf("the token is not %d any more: %w", f.token, &sqllock.HeldError{Name: name, Holder: was.Holder})
			case state.LeaseID == nil && len(state.Permits) > 0:
				freed, err = l.keeper.Store.ForcePermits(ctx, name, state.Token)
			default:
				freed, err = l.keeper.Store.Force(ctx, name, state)
				freed = freed && len(state.Permits) == 0 // somebody has written both: next come the shares or permits
			}
			if err != nil {
				return Info{}, err
			}
		}
		return was, nil
	})
	return was, freed, err
}

// Purge deletes the lease rows that expired at least the given time ago, one after the other, and returns how many it
// deleted. If ago is 0 or negative, it deletes those of all expired leases. Killed processes leave such rows. Purge never
// deletes the row of a name, because that has the token. So the number of names only grows. How many were deleted is logged at
// Info, or at Warn with an error; at Debug if there were none.
func (l *Locker) Purge(ctx context.Context, ago time.Duration) (deleted int64, err error) {
	const page = 500
	var first []byte // of the page before
	defer func() { l.events.Purged(ctx, ago, deleted, err) }()
	for {
		dead, err := ask(ctx, l, "purge", "*", func(ctx context.Context) ([]store.State, error) {
			if err := l.keeper.Store.Accepts(ctx); err != nil {
				return nil, err
			}
			return l.keeper.Store.Expired(ctx, ago, page)
		})
		if err != nil {
			return deleted, err
		}
		before := deleted
		for _, lease := range dead {
			expired, err := ask(ctx, l, "purge", "*", func(ctx context.Context) (bool, error) {
				return l.keeper.Store.Expire(ctx, lease.LeaseID)
			})
			if err != nil {
				return deleted, err
			}
			if expired { // nobody else has deleted it
				deleted++
			}
		}
		// If nothing was deleted, others may have done it. If the next page is the same, it will always be.
		if len(dead) < page || deleted == before && bytes.Equal(dead[0].LeaseID, first) {
			return deleted, nil
		}
		first = dead[0].LeaseID
	}
}

// ask runs f, and repeats it if the database undid it because of others.
func ask[T any](ctx context.Context, l *Locker, op, name string, f func(context.Context) (T, error)) (answer T, err error) {
	ctx, cancel := l.keeper.Bound(ctx)
	defer cancel()
	if err = context.Cause(ctx); err == nil { // otherwise the driver would say that the database is closed
		answer, err = dberr.Value(ctx, dberr.RetryConflicts, dberr.ConflictTimeout, f)
	}
	if err != nil {
		err = &sqllock.OpError{Op: op, Name: name, Err: l.keeper.WithCause(ctx, err)}
	}
	return answer, err
}
