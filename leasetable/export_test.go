package leasetable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/internal/backoff"
	"github.com/sqllock/sqllock/leasetable/internal/lease"
	"github.com/sqllock/sqllock/leasetable/internal/store"
	"github.com/sqllock/sqllock/leasetable/internal/wait"
)

// tables returns the store of l.
func tables(l *Locker) *store.Database { return l.keeper.Store.Store.(*store.Database) }

// ownTexts returns the statements of l alone, to be changed: Lockers of the same tables share them.
func ownTexts(l *Locker) map[store.Statement]store.Prepared {
	tables(l).Texts = maps.Clone(tables(l).Texts)
	return tables(l).Texts
}

// Waiting returns how many goroutines wait in the queue for name.
func Waiting(l *Locker, name string) int { return l.keeper.Queue.Waiting(name) }

// Spoil makes held names look free on MySQL, and makes the server refuse the statement that reads which of them a
// statement for many names has acquired. On MariaDB it also makes the server refuse the single statement that needs
// neither.
func Spoil(l *Locker) {
	texts := ownTexts(l)
	texts["acquire_at_once"] = store.Prepared{Text: "SELECT name FROM sqllock_nowhere"}
	texts["free_many"] = store.Prepared{Text: strings.Replace(texts["free_many"].Text, "lease_id IS NULL", "token > 0", 1)}
	texts["taken_many"] = store.Prepared{Text: "SELECT name, token FROM sqllock_nowhere WHERE name = ?"}
}

// Lag does what Spoil does, and also has the server show none of the names that a statement for many names has acquired, as
// a replica that lags does.
func Lag(l *Locker) {
	Spoil(l)
	const taken = "SELECT name, token, FALSE FROM sqllock_lock WHERE name IN ({names}) AND lease_id = {lease} AND FALSE"
	tables(l).Texts["taken_many"] = store.Prepared{Text: taken}
}

// HasTurn reports whether l is the first to look whether the name is free.
func HasTurn(l *Locker, name string) bool { return l.turns.Ours(name) }

// Waits reports whether a goroutine of l wants the name.
func Waits(l *Locker, name string) bool {
	if l.keeper.Queue.Try(name) {
		l.keeper.Queue.Done(name)
		return false
	}
	return true
}

// Leases returns how many leases l has.
func Leases(l *Locker) int { return len(l.keeper.EveryLease()) }

// HasOrphanPermit reports whether a lost answer may have left a permit of name with one of the first tokens.
func HasOrphanPermit(l *Locker, name string) bool {
	for _, ls := range l.keeper.EveryLease() {
		for token := range int64(1000) {
			if ls.Orphans.Has(name, token+1) {
				return true
			}
		}
	}
	return false
}

// TakeMany acquires those of names that are free, on l's lease, with the statements for many names. It returns their
// tokens.
func TakeMany(ctx context.Context, l *Locker, names []string) (map[string]int64, error) {
	ls, err := l.keeper.Begin(ctx, "", l.ttl, false)
	if err != nil {
		return nil, err
	}
	defer ls.Abandon(ctx, lease.Outcome{})
	reqs := make([]*store.Request, len(names))
	for i, name := range names {
		reqs[i] = &store.Request{Name: name, ID: ls.ID, Metadata: []byte{}}
	}
	got, err := l.keeper.Store.AcquireMany(ctx, reqs)
	tokens := make(map[string]int64)
	for name, t := range got {
		tokens[name] = t.Token
	}
	return tokens, err
}

// FreeMany releases the names of leases with the statements for many names. It returns those that it released, and for
// each whether it has a waiter in another process.
func FreeMany(ctx context.Context, l *Locker, leases []*Lease) (map[string]bool, error) {
	reqs := make([]*store.Request, len(leases))
	for i, le := range leases {
		reqs[i] = &store.Request{Name: le.Name(), ID: le.held.AttachedTo().Lease.ID, Token: le.held.Token, MinHold: le.held.MinHold}
	}
	freed, err := l.keeper.Store.ReleaseMany(ctx, reqs)
	wanted := make(map[string]bool, len(freed))
	for name, t := range freed {
		wanted[name] = t.HasWaiter
	}
	return wanted, err
}

// Explain makes the server explain how it finds names in each of the statements that lock them. It returns the plans by
// statement.
func Explain(ctx context.Context, l *Locker, names []string) (map[string]string, error) {
	reqs := make([]*store.Request, len(names))
	for i, name := range names {
		reqs[i] = &store.Request{Name: name, Token: 1, ID: make([]byte, 16)}
	}
	ways := make(map[string]string)
	for _, st := range []store.Statement{"free_many", "acquire_many", "held_many", "release_many", "acquire_at_once", "release_at_once"} {
		text := tables(l).TextFor(st, reqs, "1")
		at := strings.LastIndex(text, "\nUPDATE")
		if at < 0 {
			at = strings.LastIndex(text, "\nSELECT")
		}
		rows, err := tables(l).Work.QueryxContext(ctx, "EXPLAIN FORMAT=TRADITIONAL"+text[at:])
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			way := make(map[string]any)
			if err := rows.MapScan(way); err != nil {
				return nil, err
			}
			if _, ok := way["type"]; !ok {
				return nil, fmt.Errorf("%s is not explained: %v", st, way)
			}
			how, _ := way["type"].([]byte)
			ways[string(st)] += string(how)
		}
		if err := rows.Err(); err != nil {
			return nil, err
		}
	}
	return ways, nil
}

// Statements returns the texts of the statements of l's database, by name.
func Statements(l *Locker) map[string]string {
	texts := make(map[string]string)
	for st, text := range tables(l).Texts {
		texts[string(st)] = text.Text
	}
	return texts
}

// BreakOff closes the socket of a recently used connection of l. The driver does not know that.
func BreakOff(ctx context.Context, l *Locker) error {
	for {
		conn, err := tables(l).Work.Conn(ctx)
		if err != nil {
			return err
		}
		own := false // false for a borrowed connection, which is used while an own one takes long to open
		err = conn.Raw(func(dc any) error {
			var c interface{ Socket() net.Conn }
			if c, own = dc.(interface{ Socket() net.Conn }); !own {
				return nil
			}
			return c.Socket().Close()
		})
		if err = errors.Join(err, conn.Close()); own || err != nil { // returns it to the pool
			return err
		}
	}
}

// SpoilRest makes the server refuse the statement that acquires the names that the first statement did not acquire.
func SpoilRest(l *Locker) {
	texts := ownTexts(l)
	texts["acquire_unlocked"] = store.Prepared{Text: "SELECT FROM sqllock_nowhere WHERE $1 || $2::bytea || $3::bytea IS NULL"}
	texts["insert_many"] = store.Prepared{Text: "INSERT INTO sqllock_nowhere VALUES {values}"}
}

// Work returns the pool of connections for acquisitions and releases.
func Work(l *Locker) *sqlx.DB { return tables(l).Work.DB }

// BehindPooler reports whether l has detected a pooler.
func BehindPooler(l *Locker) bool {
	return tables(l).BehindPooler()
}

// KnowsSocket reports whether l itself closes the sockets of its connections to MySQL to end a statement.
func KnowsSocket(t *testing.T, l *Locker) (known bool) {
	t.Helper()
	conn, err := tables(l).Work.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()                // returns it to the pool
	_ = conn.Raw(func(dc any) error { // fails only if the function fails
		known = dc.(interface{ Socket() net.Conn }).Socket() != nil
		return nil
	})
	return known
}

// LockerOf returns a Locker with the leases of the Locker of le.
func LockerOf(le *Lease) *Locker {
	k := le.held.Keeper
	return &Locker{keeper: k, turns: wait.NewTurns(k), settings: settings{ttl: 15 * time.Second}}
}

// TakeLate tries to acquire a permit of a name with a limit of one, after the claim was abandoned, from the state read
// before. It returns the token, or 0.
func TakeLate(ctx context.Context, l *Locker, name string) (token int64, err error) {
	state, err := l.keeper.Store.Read(ctx, name)
	if err != nil {
		return 0, err
	}
	if err := l.keeper.Store.BumpToken(ctx, name, state); err != nil {
		return 0, err
	}
	return l.keeper.Store.AcquirePermit(ctx, name, state, make([]byte, 16), 1)
}

// TakeTooLate acquires a name inline for a caller that has left meanwhile. It reports whether the outcome is unknown.
func TakeTooLate(ctx context.Context, l *Locker, name string) (unknown bool, err error) {
	ls, err := l.keeper.Begin(ctx, "", l.ttl, false)
	if err != nil {
		return false, err
	}
	defer ls.Abandon(ctx, lease.Outcome{})
	ctx, leave := context.WithCancel(ctx)
	leave()
	o, _ := claiming{&attempt{Locker: l, Keeper: l.keeper, ctx: ctx, name: name}, ls}.tryFree()
	return o.Unknown, o.Err
}

// Force releases a name that is held with this lease and token.
func Force(ctx context.Context, l *Locker, name string, lease []byte, token int64) (forced bool, err error) {
	return l.keeper.Store.Force(ctx, name, store.State{LeaseID: lease, Token: token})
}

// ForcePermits releases all permits of a name that still has this token.
func ForcePermits(ctx context.Context, l *Locker, name string, token int64) (forced bool, err error) {
	return l.keeper.Store.ForcePermits(ctx, name, token)
}

// Join moves le to the lease of other, like an extension.
func Join(le, other *Lease) error { return other.held.AttachedTo().Lease.Join(le.held) }

// RenewLease renews a lease if it belongs to l. It repeats a renewal that was not answered, as the lease does by itself.
func RenewLease(ctx context.Context, l *Locker, id []byte) {
	for _, ls := range l.keeper.EveryLease() {
		if bytes.Equal(ls.ID, id) {
			go func() { // the lock reports a loss
				for ls.Renewals.Now(ctx) != nil && l.keeper.Closing.Err() == nil && backoff.Sleep(ctx, backoff.Last) == nil {
				}
			}()
		}
	}
}

// Renewing reports whether a statement is running on the connection for renewals.
func Renewing(l *Locker) bool { return tables(l).Renewals.Stats().InUse > 0 }

// Keep returns a Locker whose leases are in s, and which logs nothing.
func Keep(s store.Store, opts ...Option) (*Locker, error) {
	l, err := configure(append([]Option{WithLogger(nil)}, opts...))
	if err != nil {
		return nil, err
	}
	l.keepIn(s)
	return l, nil
}
