// Package mysql gives session locks on MySQL and MariaDB: GET_LOCK on dedicated connections.
//
// # What ends a lock
//
// A lock lasts until the first of these:
//   - Release.
//   - The end of the connection that it was taken on: the process ended, the connection broke,
//     the server restarted or failed over, or somebody killed the connection. The lock's
//     context ends with sqllock.ErrLost at the next heartbeat, of which there is one a second.
//   - The session TTL: the server ends a session that it has not heard of for so long
//     (wait_timeout), and so frees the locks of a process that is stopped or cut off. The
//     lock's context ends with sqllock.ErrLost when nothing was confirmed for 5/6 of the TTL,
//     counted on this process's monotonic clock from the sending of the last confirmed
//     statement.
//
// GET_LOCK does not survive a failover, and nothing is written to a table.
//
// # Connections
//
// A Locker opens connections of its own and never takes one from the application's pool. All
// locks that were free when they were asked for share one connection. Waiting for a lock
// that another process holds takes a connection for as long as the wait and the lock
// last; the goroutines of one process wait in memory, first come first served, with one
// connection for each name. A Locker made from a connection string gives its connections the
// attribute program_name "sqllock/…", which MySQL shows in
// performance_schema.session_connect_attrs.
//
// A wait blocks in the server's own queue in slices of one second, so that a waiter that was
// cut off leaves the queue instead of being granted the lock later.
//
// # What is refused
//
// Before it grants anything, a Locker refuses (sqllock.ErrRefused) a server where GET_LOCK would
// not exclude others: a read-only server, a Galera node, a member of a replication group.
// A proxy that shares server connections between clients cannot be recognised; do not use
// session locks through one.
//
// # Names
//
// GET_LOCK names belong to the whole server; a Locker's belong to its connection's database, see
// [ServerName].
package mysql
