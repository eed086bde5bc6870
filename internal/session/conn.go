// Package session keeps locks on dedicated database sessions. It is the engine of the session
// locks of every database; a database adds its statements, as a Conn.
//
// A Locker tries for locks on a shared session, which holds those that were free. A lock that
// somebody else holds is waited for on a session apart, so that no statement on a shared
// session ever waits. Every session belongs to one goroutine, which sends what many callers
// want in one statement; a caller who comes alone sends it without changing goroutines.
//
// A session is trusted until the moment its last confirmed statement was sent + TTL − margin,
// on this process's monotonic clock; the server ends it no earlier than that moment + TTL. A
// session that is no longer trusted, or whose state is uncertain after an error, is closed and
// never used again: first every lock on it is told, then its connection is closed.
package session

import (
	"context"
	"errors"
	"time"

	"github.com/sqllock/sqllock"
)

// Want is a lock that is asked for.
type Want[K comparable] struct {
	Name   string // what its callers call it
	Key    K      // what the server calls it
	Shared bool   // others may have it at the same time, if they share as well

	Wait  *time.Duration // how long Acquire waits at most; nil: as long as its context lives
	Probe bool           // see option.Options
}

func (w Want[K]) take() Op[K] { return Op[K]{Key: w.Key, Shared: w.Shared, Take: true} }
func (w Want[K]) give() Op[K] { return Op[K]{Key: w.Key, Shared: w.Shared} }

// Op is one thing to do with a key: take it if it is free, or give it back.
type Op[K comparable] struct {
	Key    K
	Shared bool
	Take   bool
	Done   bool // the answer: it was taken, or it was this session's to give back
}

// Conn is a dedicated connection whose session can hold locks. Its methods are called by one
// goroutine at a time, but for Cut. After a method failed because of its context or its
// deadline the Conn need not be usable.
type Conn[K comparable] interface {
	// Run does ops, in their order and without waiting, in one round trip. After an error
	// any of them may have been done. A Conn that is a resumer returns ErrLate when the answer
	// has not come by soon.
	Run(until, soon time.Time, ops []*Op[K]) error

	// Wait waits for the key of op, which takes it, for some time up to two seconds. It has
	// been waited for already for as long as waited: who waits longer should have better chances.
	// It is only called on a session that holds nothing.
	Wait(ctx context.Context, op *Op[K], waited time.Duration) error

	// Forget gives back all that the session holds, and its place among those who wait. It is
	// called when a Wait is not called again.
	Forget(ctx context.Context) error

	// Holder reports who holds key, and whether anybody does.
	Holder(ctx context.Context, key K) (sqllock.Holder, bool, error)

	// Ping makes sure that the session lives on a server that can still be trusted with
	// locks, and restarts the server's count of its idle time.
	Ping(ctx context.Context) error

	// Watch returns an error as soon as the connection is known to be dead, ErrDoubt when it may be, and nil when
	// ctx ends; the Conn is usable then.
	Watch(ctx context.Context) error

	// Cut makes the Run under way, and every later one, fail soon. Any goroutine may call it.
	Cut()

	// Broken reports whether err left the connection unusable.
	Broken(err error) bool

	// Close ends the session, in bounded time.
	Close()
}

// resumer is a Conn whose Run need not be waited for by who called it.
type resumer[K comparable] interface {
	// Resume waits for the answer after Run returned ErrLate, for the same ops.
	Resume(until time.Time, ops []*Op[K]) error
}

// ErrDoubt says that something came on an idle connection that may be its end: a Ping tells.
var ErrDoubt = errors.New("the connection may have ended")

// ErrLate says that the answer has not come yet.
var ErrLate = errors.New("the answer has not come yet")
