// Package mysql gives session locks on MySQL and MariaDB: GET_LOCK on dedicated connections.
//
// # What ends a lock
//
// A lock lasts until the first of these:
//   - Release.
//   - The end of the connection that it was taken on: the process ended, the connection broke,
//     the server restarted or failed over, or somebody killed the connection. The lock's
//     context ends with sqllock.ErrLost, within milliseconds where the socket of an idle connection
//     can be watched: on Linux, macOS and other Unix systems, over TCP, a Unix socket or TLS. Elsewhere
//     (Windows, a dialler of one's own whose connections are neither the net package's nor crypto/tls on
//     those) at the next heartbeat, of which there is one a second.
//   - The session TTL: the server ends a session that it has not heard of for so long
//     (wait_timeout), and so frees the locks of a process that is stopped or cut off. The
//     lock's context ends with sqllock.ErrLost when nothing was confirmed for 5/6 of the TTL,
//     counted on this process's monotonic clock from the sending of the last confirmed
//     statement.
//
// GET_LOCK does not survive a failover, and nothing is written to a table. So no replication protects it: a holder that is
// still connected to an old primary which can still be written to after another server was promoted is told nothing, while
// others take the lock on the new primary. Only fencing of the old primary closes that gap; to set it read-only does.
//
// # Connections
//
// A Locker opens connections of its own and never takes one from the application's pool: at most
// 20, see [WithMaxConnections]. Locks that were free when they were asked for share one, 1,000 of them at most,
// and what many goroutines ask for at the same time goes in one statement. A lock that another
// process holds is waited for on a connection apart, where it then stays until it is released;
// the connection is kept for the next wait for 5 s. A Locker made from a connection string gives
// its connections the attribute program_name "sqllock/…", which MySQL shows in
// performance_schema.session_connect_attrs.
//
// The goroutines of one process that want the same lock wait in memory, first come first served,
// and hand it over without asking the server. After 8 times or 20 ms another process has its turn
// if one waits. To hand a lock over is to release it on what is known of the connection: if the server
// ended it and that was not seen yet, Release still returns nil, and the next is told of the loss.
//
// A wait blocks in the server's own queue in slices of one or two seconds. A waiter that was cut off
// leaves the queue at the end of its slice; if the lock is granted to it before, it is free when the
// session TTL is over.
//
// Two Lockers that each wait for what the other holds wait until a context ends: the locks are held
// on other connections than the waits, and the server sees no deadlock. Acquire several locks by
// sqllock.AcquireAll.
//
// # What is refused
//
// Before it grants anything, a Locker refuses (sqllock.ErrRefused) a server where GET_LOCK would
// not exclude others: a read-only server, a Galera node, a member of a replication group; and servers before
// MySQL 8.0.22 and MariaDB 10.6. A replica that can be written to cannot be told from a primary. A server
// that becomes read-only ends the locks within a second.
// A proxy that shares server connections between clients cannot be recognised; do not use
// session locks through one.
//
// # Looking and ending
//
// [Locker.Inspect] says who holds a lock and how many wait, [Locker.List] every lock of the server,
// and [Locker.Terminate] ends the connection that holds one, with every lock on it. List and the
// number of waiters come from performance_schema: on by default on MySQL; MariaDB has to be started
// with performance_schema=ON and the instrument wait/lock/metadata/sql/mdl. Terminate takes the same user, or
// CONNECTION_ADMIN.
//
// # Names
//
// GET_LOCK names belong to the whole server; a Locker's belong to its connection's database, see
// [ServerName], or with [WithServerWideNames] to the whole server.
package mysql
