// Package sqllock is the vocabulary of locks for programs that already have a SQL
// database: what a [Locker] and a [Lock] are, what ends a lock, and which errors say so.
// The locks themselves live in the packages below it.
//
// # Which lock, and what ends it
//
//	kind          package       it ends when                                      behind a transaction pooler
//	session lock  pg, mysql     its dedicated connection ends, or the server's    refused, with the reason
//	                            session timeout passes, or Release
//	lease         leasetable    its expiry passes without renewal, or Release     works
//
// A session lock costs no table and is freed by the server as soon as the holder's
// connection is gone. A lease is a row: it survives a restart of the database, works behind
// every pooler, and carries a fencing token ([HeldError] shows it, leasetable.Lease.Token
// returns it) that only ever rises.
//
// # The life of a lock
//
//	         Acquire, TryAcquire
//	(free) ───────────────────────▶ held ──── Release ───▶ released   Context: ErrReleased
//	                                 │
//	                                 ├── the connection or the row is gone ──▶ lost      ErrLost
//	                                 │
//	                                 └── the deadline passed unrenewed ─────▶ expired   ErrExpired
//
// Whatever ends a lock cancels its [Lock.Context] with the cause on the right. For Release
// and for a deadline that happens before anybody else can hold the lock: the deadline is
// counted on this process's own monotonic clock, from the moment the last confirmed
// statement was sent, and lies before the one that the server counts. When the server
// itself ends the session (it was restarted, or somebody terminated the connection), the
// holder is told within milliseconds; on Windows, for MySQL and MariaDB, within a second.
//
// Locks are not re-entrant: a second acquisition of a held name waits (Acquire) or fails
// (TryAcquire), also within one process.
//
// # Use
//
// [Do] runs a function while a lock is held and cancels the function's context when the
// lock ends early. [AcquireAll] takes several names without risking a deadlock.
package sqllock
