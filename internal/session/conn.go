// Package session takes locks on a Locker's own database sessions. It is the engine of the session locks of every database;
// a database adds its statements, as a Conn.
//
// A Locker tries for a lock on a shared session, which holds the locks that were free. It waits for a held lock on a
// dedicated session, so that no statement on a shared session ever waits. Every session belongs to one goroutine, which
// sends the requests of many callers in one statement. A caller that comes alone borrows the connection and sends its
// request without a goroutine switch.
//
// A session is trusted until sent + TTL − margin, where sent is the moment when its last confirmed statement was sent,
// on this process's monotonic clock. The server ends the session no earlier than sent + TTL. A session that is no
// longer trusted, or whose state is uncertain after an error, is closed and never used again: first every lock on it
// ends, then its connection is closed.
//
// A Locker acquires and releases locks. Its pool opens sessions and chooses one for each request; a waiter waits for a
// lock that is held, and a share is held by many goroutines together. A session runs calls on its connection. Its state
// is what callers may touch meanwhile: the locks on it, the queue of calls, and the trust in it.
package session

import (
	"context"
	"errors"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/option"
)

// Want is a request for a lock.
type Want[K comparable] struct {
	Name   string // the name that its callers use
	Key    K      // the key that the server uses
	Shared bool   // other holders of a share may hold it at the same time

	Wait  *time.Duration // the longest wait of Acquire; nil: as long as its context lives
	Probe bool           // see option.Options, as of Whole
	Whole *option.Whole
}

func (w Want[K]) take() Op[K] { return Op[K]{Key: w.Key, Shared: w.Shared, Take: true} }
func (w Want[K]) give() Op[K] { return Op[K]{Key: w.Key, Shared: w.Shared} }

// Op is one operation on a key: take it if it is free, or give it back.
type Op[K comparable] struct {
	Key    K
	Shared bool
	Take   bool
	Done   bool // the answer: the key was taken, or this session held it and gave it back
}

// give returns the operation that gives the key of o back.
func (o *Op[K]) give() *Op[K] { return &Op[K]{Key: o.Key, Shared: o.Shared} }

// Conn is a connection of a Locker's own, whose session can hold locks. One goroutine at a time calls its methods,
// except for Cut. After a method failed because of its context or its deadline, the Conn need not be usable.
type Conn[K comparable] interface {
	// Run does ops, in their order and without waiting for locks, in one round trip. After an error any of them may
	// have been done. A Conn that is a resumer returns ErrLate if the answer has not come by soon.
	Run(until, soon time.Time, ops []*Op[K]) error

	// Wait waits for the key of op and takes it, for some seconds at most. waited is how long the caller has
	// waited for the key already: a longer wait should have better chances. left is for how long the caller goes on at
	// most: after that the session only waits in vain. Wait is only called on a session that holds nothing. It makes sure
	// of the same as Ping, after it has taken the key.
	Wait(ctx context.Context, op *Op[K], waited, left time.Duration) error

	// Forget gives back everything that the session holds, and its place in the server's queue. It is called when a
	// Wait is not called again.
	Forget(ctx context.Context) error

	// Holder returns the holder of key, and whether there is one.
	Holder(ctx context.Context, key K) (sqllock.Holder, bool, error)

	// Ping makes sure that the session lives on a server that can still be trusted with locks. It restarts the server's
	// count of the session's idle time.
	Ping(ctx context.Context) error

	// Watch returns an error as soon as the connection is known to be dead, ErrDoubt when it may be dead, and nil when
	// ctx ends. After nil the Conn is usable.
	Watch(ctx context.Context) error

	// Cut makes the current Run, and every later one, fail soon. Any goroutine may call it.
	Cut()

	// Broken reports whether err left the connection unusable.
	Broken(err error) bool

	// Close ends the session, in bounded time.
	Close()
}

// resumer is a Conn for which another goroutine can wait for the answer to a Run.
type resumer[K comparable] interface {
	// Resume waits for the answer after Run returned ErrLate, for the same ops.
	Resume(until time.Time, ops []*Op[K]) error
}

// keeper is a Conn whose server ends a session sooner than after its TTL if that waits: it is in the way of others.
type keeper[K comparable] interface {
	// Keep has the server keep the session for its TTL again. It is called after a Wait that took its key.
	Keep(ctx context.Context) error

	// Keeps reports whether the server does that: it may be too old.
	Keeps() bool
}

// ErrDoubt says that something came on an idle connection that may be its end. A Ping finds out.
var ErrDoubt = errors.New("the connection may have ended")

// ErrLate says that the answer has not come yet.
var ErrLate = errors.New("the answer has not come yet")
