// Package pg gives session locks on PostgreSQL: advisory locks on dedicated connections.
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
//     process's monotonic clock from the sending of the last confirmed statement.
//
// An advisory lock does not survive a failover, and nothing is written to a table.
//
// # Connections
//
// A Locker opens connections of its own and never takes one from the application's pool. All
// locks that were free when they were asked for share one connection. Waiting for a lock
// that another process holds takes a connection for as long as the wait and the lock
// last; the goroutines of one process wait in memory, first come first served, with one
// connection for each name. The connections show up in pg_stat_activity with an
// application_name that begins with "sqllock/".
//
// A wait blocks in the server's own queue in slices of 400 ms, so that the holder can run
// CREATE INDEX CONCURRENTLY, which waits for every transaction that is older than itself.
//
// # What is refused
//
// Before it grants anything, a Locker refuses (sqllock.ErrRefused) a server where an advisory
// lock would not exclude others: a connection pooler in between, a standby, CockroachDB, and
// PostgreSQL before version 14, which has no idle_session_timeout.
//
// # Keys
//
// A name becomes a 64-bit key, see [Key]. Advisory locks belong to one database of the server:
// the same name in another database is another lock.
package pg
