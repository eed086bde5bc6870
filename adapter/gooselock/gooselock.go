package gooselock

import (
	"context"
	"database/sql"
	"errors"
	"reflect"

	"github.com/pressly/goose/v3/lock"

	"github.com/sqllock/sqllock"
)

var (
	_ lock.Locker        = (*Locker)(nil)
	_ lock.SessionLocker = (*Locker)(nil)
)

// Locker is both kinds of goose's lockers: pass it to goose.WithLocker or to goose.WithSessionLocker. They do the same.
// A Go migration without a transaction needs a second connection of the pool, with any locker. With a session locker goose
// refuses it if the pool has one; with WithLocker it waits for another one until ctx ends.
//
// Providers of a process may share a Locker. They migrate one after the other: even if the lock is lost, the next one, which
// has the lock by then, waits until ctx ends for the Unlock of the one before.
type Locker struct {
	locks sqllock.Locker // nil if there is none
	name  string
	opts  []sqllock.Option

	inUse chan struct{} // holds one value from a Lock to its Unlock
	held  sqllock.Lock  // of the caller between them
}

// New returns a Locker that takes the lock called name from l: a *pg.Locker, a *mysql.Locker or a *leasetable.Locker, which
// the caller closes when goose has finished. The options are those of the acquisition. Without sqllock.WithWait, a
// Provider waits until the context of its command ends. If l is nil, Lock returns an error.
func New[L sqllock.Lock](l sqllock.Acquirer[L], name string, opts ...sqllock.Option) *Locker {
	locker := &Locker{name: name, opts: opts, inUse: make(chan struct{}, 1)}
	if v := reflect.ValueOf(l); v.IsValid() && (v.Kind() != reflect.Pointer || !v.IsNil()) {
		locker.locks = sqllock.AnyKind(l)
	}
	return locker
}

// Lock implements lock.Locker. It waits until it has the lock or ctx ends, and uses no connection of the pool that goose
// passes. After an error nothing is held. The error is that of the Acquire of New's l: it matches sqllock.ErrHeld if
// another process has the lock.
func (l *Locker) Lock(ctx context.Context, _ *sql.DB) error { return l.lock(ctx) }

// Unlock implements lock.Locker. It returns nil if the lock was held until now, and sqllock.ErrLost or ErrExpired if it was
// not. goose adds the error to that of its command. After any other error the database has not confirmed the release;
// the package of the lock documents what then ends it. Unlock works with a dead ctx.
func (l *Locker) Unlock(ctx context.Context, _ *sql.DB) error { return l.unlock(ctx) }

// SessionLock implements lock.SessionLocker. It does what Lock does, and does not use the connection.
func (l *Locker) SessionLock(ctx context.Context, _ *sql.Conn) error { return l.lock(ctx) }

// SessionUnlock implements lock.SessionLocker. It does what Unlock does, and does not use the connection.
func (l *Locker) SessionUnlock(ctx context.Context, _ *sql.Conn) error { return l.unlock(ctx) }

func (l *Locker) lock(ctx context.Context) error {
	if l.locks == nil {
		return &sqllock.OpError{Op: "acquire", Name: l.name, Err: errors.New("the Locker that was given to gooselock.New is nil")}
	}
	held, err := l.locks.Acquire(ctx, l.name, l.opts...)
	if err != nil {
		return err
	}
	select {
	case l.inUse <- struct{}{}: // at once, unless the lock was lost to another Provider of this process, which goes on
		l.held = held
		return nil
	case <-ctx.Done():
		err = &sqllock.OpError{Op: "acquire", Name: l.name, Err: context.Cause(ctx)}
	case <-held.Context().Done(): // lost, as its release says
	}
	return errors.Join(err, held.Release(ctx))
}

func (l *Locker) unlock(ctx context.Context) error {
	held := l.held
	if held == nil {
		return &sqllock.OpError{Op: "release", Name: l.name, Err: errors.New("it is not locked")}
	}
	l.held = nil
	defer func() { <-l.inUse }() // also if a hook panics
	return held.Release(ctx)
}
