package leasetable

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/lockname"
	"github.com/sqllock/sqllock/schema"
)

// Info is what the tables say of a name.
type Info struct {
	Name  string
	Token int64 // the highest that the name has had; 0: it was never taken
	Held  bool  // by a lease that has not expired, or kept after its release

	// Expired says that nobody has released the name, and that its lease has expired: the holder was killed or cut off, or
	// has lost it, and nobody has followed yet. A name that is neither Held nor Expired is free: it was released, or the
	// row of its lease is gone, which the end of its Locker deletes, and Purge, and who begins to take over a dead
	// holder's names. Which of these it was cannot be told.
	Expired bool

	// Taken is when the name was last taken, by the database's clock; zero: never. A name that one holds alone and that is
	// free with a token that is higher by one, but was not taken since, was released by force.
	Taken time.Time

	// Holder is who holds the name, or held it by a lease that has expired and was not followed
	// by another. It is zero when the name is free; while the name is
	// kept after its release (WithHoldAtLeast), only Token, Since, Until and Metadata are known.
	Holder sqllock.Holder

	// Holders are all who hold the name, by their tokens; the first of them is Holder. There are several only if the name is Shared.
	Holders []sqllock.Holder
	Shared  bool // its holders have it together (WithShared, WithLimit)
	Limit   int  // how many can, with WithLimit; 0: any number

	// WantedSince is since when a process waits for the name that one holds alone, of several that which has waited
	// longest, by the database's clock. It is zero when none is known to wait, and can lag behind by some seconds.
	WantedSince time.Time
}

// ListOption narrows what List returns. With several a name has to meet all of them.
type ListOption func(Info) bool

// OnlyHeld leaves out names that are not held.
func OnlyHeld() ListOption { return func(i Info) bool { return i.Held } }

// OnlyExpired leaves out names but those of dead holders, whom nobody has followed yet.
func OnlyExpired() ListOption { return func(i Info) bool { return i.Expired } }

// OnlyOwner leaves out names whose Holder is not owner ([WithOwner]).
func OnlyOwner(owner string) ListOption {
	owner = truncate(owner)
	return func(i Info) bool { return i.Holder != (sqllock.Holder{}) && i.Holder.Owner == owner }
}

// Inspect returns what the tables say of a name, which may never have been taken. Options of an acquisition change
// nothing; those of another backend are an error.
func (l *Locker) Inspect(ctx context.Context, name string, opts ...sqllock.Option) (Info, error) {
	state, err := l.inspect(ctx, name, opts...)
	if err != nil {
		return Info{}, err
	}
	state.Name = []byte(name)
	return state.info(), nil
}

// List returns the names that begin with prefix, in the order of their bytes: those that are held,
// those of expired leases, and those that are free, unless only some of them are asked for. All that begin with prefix
// are read, a thousand at a time; it is no snapshot.
func (l *Locker) List(ctx context.Context, prefix string, only ...ListOption) ([]Info, error) {
	const page = 1000
	last := prefix + strings.Repeat("\xff", maxName)
	var infos []Info
	for from := prefix; ; {
		var seen []lockState
		err := l.ask(ctx, "list", prefix, func(ctx context.Context) (err error) {
			seen, err = l.store.states(ctx, list, []byte(from), []byte(last), page)
			return err
		})
		if err != nil {
			return nil, err
		}
		together, err := l.listTogether(ctx, prefix, seen)
		if err != nil {
			return nil, err
		}
		for _, s := range seen {
			s.permits = together[string(s.Name)]
			info := s.info()
			if !slices.ContainsFunc(only, func(meets ListOption) bool { return !meets(info) }) {
				infos = append(infos, info)
			}
		}
		if len(seen) < page {
			return infos, nil
		}
		from = string(seen[page-1].Name) + "\x00" // the next name there can be
	}
}

func (s lockState) info() Info {
	info := Info{Name: string(s.Name), Token: s.Token, Held: s.taken(), Expired: s.LeaseID != nil && !s.Gone && !s.taken()}
	if info.Held || info.Expired {
		info.Holder = s.holder()
	}
	if s.AcquiredUS != 0 {
		info.Taken = time.UnixMicro(s.AcquiredUS)
	}
	if s.WaiterUS != 0 && !s.Permits.Valid {
		info.WantedSince = time.UnixMicro(s.WaiterUS)
	}
	together := s.together()
	for _, holder := range together {
		info.Holders = append(info.Holders, holder.holder())
	}
	if info.Shared, info.Limit = len(together) > 0, limitOf(together); info.Held && !info.Shared {
		info.Holders = []sqllock.Holder{info.Holder}
	}
	return info
}

// listTogether reads who holds names together that were seen.
func (l *Locker) listTogether(ctx context.Context, prefix string, seen []lockState) (by map[string][]lockState, err error) {
	if !slices.ContainsFunc(seen, func(s lockState) bool { return s.Permits.Valid }) {
		return nil, nil
	}
	var places []lockState
	err = l.ask(ctx, "list", prefix, func(ctx context.Context) (err error) {
		places, err = l.store.states(ctx, listPermits, seen[0].Name, seen[len(seen)-1].Name)
		return err
	})
	by = make(map[string][]lockState)
	for _, p := range places {
		by[string(p.Name)] = append(by[string(p.Name)], p)
	}
	return by, err
}

// ForceRelease frees name, whoever holds it, and returns what the name was: of those who held it together all lose
// it. If the name was released, or never taken, nothing happens. Otherwise, also when it is free because the row of
// its lease is gone, its token rises. A holder's context ends with sqllock.ErrLost at its next renewal, which comes
// within a third of its TTL; until then the next holder and it may both be at work, and only what
// compares tokens, or is guarded, is safe. After an error the name may have been freed, if the
// connection broke or ctx ended.
func (l *Locker) ForceRelease(ctx context.Context, name string) (was Info, err error) {
	const op = "force the release of"
	if err := lockname.Check(name); err != nil {
		return Info{}, &sqllock.OpError{Op: op, Name: name, Err: err}
	}
	err = l.ask(ctx, op, name, func(ctx context.Context) error {
		for freed := false; !freed; { // somebody may take or release it meanwhile
			state, err := l.store.read(ctx, name)
			if err != nil {
				return err
			}
			state.Name = []byte(name)
			was = state.info()
			switch {
			case state.LeaseID == nil && !state.taken():
				return nil
			case len(state.permits) > 0:
				freed, err = l.store.forcePermits(ctx, name, state.Token)
			default:
				freed, err = l.store.force(ctx, name, state)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return Info{}, err
	}
	return was, nil
}

// Purge deletes the rows of leases that expired at least the given time ago, some hundreds in a
// statement, and returns how many: what processes leave that were killed. The rows of names stay,
// for their tokens.
func (l *Locker) Purge(ctx context.Context, ago time.Duration) (deleted int64, err error) {
	const batch = 500
	for {
		var rows int64
		err := l.ask(ctx, "purge", "*", func(ctx context.Context) (err error) {
			rows, err = l.store.change(ctx, &l.store.work, purge, max(ago, 0).Microseconds(), batch)
			return err
		})
		deleted += rows
		if err != nil || rows < batch {
			return deleted, err
		}
	}
}

// ask runs f, again when the database undid it because of others.
func (l *Locker) ask(ctx context.Context, op, name string, f func(context.Context) error) error {
	ctx, cancel := l.bound(ctx)
	defer cancel()
	if err := retryConflicts(ctx, f); err != nil {
		return &sqllock.OpError{Op: op, Name: name, Err: l.withCause(ctx, err)}
	}
	return nil
}

// force frees a name as it was seen, and leaves word for its lease. It reports whether the name
// was still as seen.
func (s *store) force(ctx context.Context, name string, state lockState) (bool, error) {
	args := []any{row{[]byte(name)}, state.LeaseID, state.Token}
	switch s.dialect {
	case schema.MySQL:
		rows, err := s.change(ctx, &s.work, force, args...)
		return rows > 0, err
	case schema.SQLite:
		return s.forceSQLite(ctx, args)
	default:
		n, err := s.number(ctx, &s.work, force, args...)
		return n > 0, err
	}
}

// forceSQLite does it in two statements: SQLite has none that changes two tables.
func (s *store) forceSQLite(ctx context.Context, args []any) (bool, error) {
	tx, err := s.work.BeginTxx(ctx, nil)
	if err != nil {
		return false, classify(err)
	}
	defer func() { _ = tx.Rollback() }() // after the commit it does nothing
	result, err := tx.ExecContext(ctx, s.texts[force], s.wire(args)...)
	if err != nil {
		return false, classify(err)
	}
	if rows, err := result.RowsAffected(); err != nil || rows == 0 {
		return false, classify(err)
	}
	if _, err := tx.ExecContext(ctx, s.texts[notifyLease], args[1]); err != nil {
		return false, classify(err)
	}
	return true, classify(tx.Commit())
}
