// Package pg gives session locks on PostgreSQL, advisory locks on dedicated connections, and
// transaction locks in the caller's transactions.
//
// # What ends a lock
//
// A lock lasts until the first of these:
//   - Release.
//   - The end of the connection that it was taken on: the process ended, the connection broke,
//     the server restarted or failed over, or somebody called pg_terminate_backend. The
//     lock's context ends with sqllock.ErrLost as soon as the connection's end is seen, which
//     takes milliseconds on a connection that was closed.
//   - The session TTL: the server ends a session that it has not heard of for so long
//     (idle_session_timeout), and so frees the locks of a process that is stopped or cut
//     off. A Locker pings its sessions every third of the TTL, but at least every 5 s, and the lock's context ends
//     with sqllock.ErrLost when nothing was confirmed for 5/6 of it, counted on this
//     process's monotonic clock from the sending of the last confirmed statement. PostgreSQL 12 and 13
//     have no such timeout: there TCP keepalives and tcp_user_timeout free the locks of a client that was cut
//     off, a little later than the TTL, and a process that is merely stopped keeps its locks until it goes on. A Locker
//     logs a warning when it first meets such a server.
//
// An advisory lock does not survive a failover, and nothing is written to a table. So synchronous replication does not
// protect it: a holder that is still connected to an old primary which goes on serving after a standby was promoted is told
// nothing, while others take the lock on the new primary. Only fencing of the old primary closes that gap.
//
// # Connections
//
// A Locker opens connections of its own and never takes one from the application's pool: at most
// 20, see [WithMaxConnections]. Locks that were free when they were asked for share one, 600 of them at most, and
// what many goroutines ask for at the same time goes in one statement. A lock that another
// process holds is waited for on a connection apart, where it then stays until it is released;
// the connection is kept for the next wait for 5 s. The connections show up in pg_stat_activity
// with an application_name that begins with "sqllock/".
//
// The goroutines of one process that want the same lock wait in memory, first come first served,
// and hand it over without asking the server. After 8 times or 20 ms another process has its turn
// if one waits. To hand a lock over is to release it on what is known of the connection: if the server
// ended it milliseconds ago, Release still returns nil, and the next is told of the loss.
//
// A wait blocks in the server's own queue in slices of at most 450 ms, so that the holder can run
// CREATE INDEX CONCURRENTLY, which waits for every transaction that is older than itself. Who waits
// holds another key meanwhile, the gate, or waits for that one: so the next holder is settled, and the
// others' chances rise with the time that they wait. A waiter that is cut off is out of the way after a
// second.
//
// Two Lockers that each wait for what the other holds wait until a context ends: the locks are held
// on other sessions than the waits, and the server sees no deadlock. Acquire several locks by
// sqllock.AcquireAll.
//
// # What is refused
//
// Before it grants anything, a Locker refuses (sqllock.ErrRefused) a server where an advisory
// lock would not exclude others: a connection pooler in between, unless it is said to pool sessions
// ([WithSessionPooling]) and a test does not find otherwise, a standby, CockroachDB, and PostgreSQL
// before version 12. It does not recognise pgpool-II, which shows clients the process of the server as the server
// does; sqllock doctor does. Connections of a *sql.DB that send cancel requests (pgx's
// CancelRequestContextWatcherHandler) are sqllock.ErrUnsupported.
//
// # Shared locks
//
// [WithShared] takes a share of a lock. The goroutines of a Locker have one share on the server
// together, since a session that has a share gets more of them past everybody who waits. Nobody
// joins it while a goroutine, or another process, waits for the lock itself; the server is asked about
// processes when the share is joined, every 20 ms at most.
//
// # Transaction locks
//
// [LockTx] and its kin take the same locks for a transaction of the caller's. Such a lock ends with
// the transaction, needs no connection of its own, and works behind a pooler that pools transactions.
// It has no context: what was done in the transaction is undone when its connection ends. At
// REPEATABLE READ and above see the warning at LockTx.
//
// # Looking and ending
//
// [Locker.Inspect] says who holds a lock and how many wait, [Locker.List] every advisory lock of
// the database, by its key, and [Locker.Terminate] ends the session that holds one, with every lock
// on it. Without pg_read_all_stats, Address and Since of other roles' sessions are not known.
//
// # Keys
//
// A name becomes a 64-bit key, see [Key]; [WithKey] and [WithPair] take the keys of other programs. Advisory locks belong to one database of the server:
// the same name in another database is another lock.
package pg
