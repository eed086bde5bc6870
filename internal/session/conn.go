// Package session keeps locks on dedicated database sessions. It is the engine of the session
// locks of every database; a database adds its statements, as a Conn.
//
// A Locker has one shared session, on which it tries for locks and holds those that were free.
// A lock that somebody else holds is waited for on a session apart, so that no statement on
// the shared session ever waits. Every session belongs to one goroutine. The session is trusted until
// the moment its last confirmed statement was sent + TTL − margin, on this process's monotonic
// clock; the server ends it no earlier than that moment + TTL. A session that is no longer
// trusted, or whose state is uncertain after an error, is closed and never used again: first
// every lock on it is told, then its connection is closed.
package session

import (
	"context"

	"github.com/sqllock/sqllock"
)

// Conn is a dedicated connection whose session can hold locks. Its methods are called by one
// goroutine at a time. After a method failed because of ctx the Conn need not be usable.
type Conn[K comparable] interface {
	// Try takes key if it is free, without waiting.
	Try(ctx context.Context, key K) (bool, error)

	// Wait waits for key for up to a second and reports whether it was taken. It is only
	// called on a session that holds nothing.
	Wait(ctx context.Context, key K) (bool, error)

	// Unlock gives key back and reports whether this session held it.
	Unlock(ctx context.Context, key K) (bool, error)

	// Holder reports who holds key, and whether anybody does.
	Holder(ctx context.Context, key K) (sqllock.Holder, bool, error)

	// Ping makes sure that the session lives, and restarts the server's count of its idle time.
	Ping(ctx context.Context) error

	// Watch returns an error as soon as the connection is known to be dead, and nil when ctx
	// ends; the Conn is usable then.
	Watch(ctx context.Context) error

	// Broken reports whether err left the connection unusable.
	Broken(err error) bool

	// Close ends the session, in bounded time.
	Close()
}
