// Package mysql takes session locks on MySQL and MariaDB: GET_LOCK on connections of a Locker's own.
//
// # Use
//
//	locker, err := mysql.New("user:password@tcp(host:3306)/database")
//	if err != nil {
//		return err
//	}
//	defer locker.Close()
//
//	return sqllock.Do(ctx, locker, "migrations", func(ctx context.Context) error {
//		return migrate(ctx) // ctx ends if the lock is lost
//	})
//
// [FromDB] and [FromConnector] make a Locker that connects as a *sql.DB or a connector does. Open one Locker per
// process.
//
// # What ends a lock
//
// A lock lasts until the first of these:
//   - Release.
//   - The end of the connection that it was taken on: the process ended, the connection broke, the server restarted
//     or failed over, or somebody killed the connection.
//   - The session TTL ([WithSessionTTL]): the server ends a session that was silent for so long (wait_timeout). So it
//     frees the locks of a process that is stopped or cut off.
//
// # How the holder learns of it
//
// When its connection ends, the lock's context ends with sqllock.ErrLost. That takes milliseconds where the socket of
// an idle connection can be watched: on Linux, macOS and other Unix systems, over TCP, a Unix socket or TLS. Elsewhere
// (Windows, or a custom dialler whose connections are neither the net package's nor crypto/tls on those) the next
// heartbeat finds out. There is one a second.
//
// When nothing was confirmed for 5/6 of the TTL, the lock's context ends with sqllock.ErrLost. The time is counted on
// this process's monotonic clock, from the sending of the last confirmed statement, so the context ends before the
// server frees the lock.
//
// On Linux this deadline also passes while the machine is suspended, and the context ends within a second of the
// resume. Elsewhere (macOS, Windows, BSD) Go's monotonic clock may stand still meanwhile, and the context ends with the
// next heartbeat.
//
// # Failovers
//
// GET_LOCK does not survive a failover, and nothing is written to a table. So no replication protects it. If the old
// primary can still be written to after another server was promoted, a holder that is still connected to it learns
// nothing, while others take the lock on the new primary. Only fencing of the old primary closes that gap; setting it
// read-only is enough.
//
// # What is refused
//
// Before it grants anything, a Locker refuses (sqllock.ErrRefused) a server where GET_LOCK would not exclude others:
//   - a read-only server, also one whose InnoDB is (innodb_read_only): the error matches sqllock.ErrReadOnly, too, since
//     that may pass;
//   - a Galera node, also of Percona XtraDB Cluster, which was not tried;
//   - a member of a replication group;
//   - servers before MySQL 8.0.22 and MariaDB 10.6;
//   - relatives whose version says who they are: TiDB, Vitess, OceanBase, SingleStore.
//
// An SQL node of MySQL NDB Cluster is not recognised, though GET_LOCK is known to it alone: do not use session locks there.
// A replica that can be written to cannot be told from a primary. When a server becomes read-only, its locks end within
// two seconds; so do those of a connection that has another session by then, as behind a proxy that replaces it. A proxy
// that shares server connections between clients is not always recognised: do not use session locks through one.
//
// # Names
//
// GET_LOCK names belong to the whole server. The names of a Locker belong to its connection's database, see
// [ServerName], or with [WithServerWideNames] to the whole server.
//
// # Inspecting and terminating
//
// [Locker.Inspect] returns the holder of a lock and the number of waiters. [Locker.List] returns every lock of the
// server. [Locker.Terminate] ends the connection that holds a lock, with every lock on it. List and the number of
// waiters come from performance_schema: on by default on MySQL; MariaDB has to be started with performance_schema=ON
// and the instrument wait/lock/metadata/sql/mdl. Terminate requires the same user, or CONNECTION_ADMIN.
//
// # What it costs
//
// A Locker opens connections of its own, at most 20 ([WithMaxConnections]), and never takes one from the application's
// pool. [New] gives them the attribute program_name "sqllock/…", which MySQL shows in
// performance_schema.session_connect_attrs. [FromDB] and [FromConnector] leave it as it is, see [WithOwner]. A Locker
// from [FromDB] or [FromConnector] is slower than one from a DSN: the driver switches goroutines for every statement.
//
// Locks that were free when they were requested share one connection, 1,000 locks at most. Requests of many goroutines
// at the same time go in one statement, as a batch. A wait for a lock that another process holds takes a dedicated
// connection. The lock then stays on it until it is released, and the connection is kept for the next wait for 5 s.
//
// # How it works inside
//
// The goroutines of one process that want the same lock wait in a queue in memory, first come first served. A release
// hands the lock to the next waiter without asking the server. After 8 handoffs or 20 ms another process gets the lock
// if one waits. A handoff relies on what is known about the connection: if the server ended it and the Locker has not
// seen that yet, Release still returns nil, and the next holder learns of the loss.
//
// A wait blocks in the server's own queue, in slices of one to four seconds. A waiter that was cut off leaves the queue
// at the end of its slice. If the lock is granted to it before that, the lock is free when the session TTL is over.
//
// Two Lockers that each wait for a lock of the other wait until a context ends: the locks are held on other connections
// than the waits, and the server sees no deadlock. Acquire several locks with sqllock.AcquireAll.
package mysql
