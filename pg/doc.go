// Package pg takes locks on PostgreSQL: session locks, which are advisory locks on connections of a Locker's own, and
// transaction locks in the caller's transactions.
//
// # Use
//
//	locker, err := pg.New("postgres://user:password@host:5432/database")
//	if err != nil {
//		return err
//	}
//	defer locker.Close()
//
//	return sqllock.Do(ctx, locker, "migrations", func(ctx context.Context) error {
//		return migrate(ctx) // ctx ends if the lock is lost
//	})
//
// [FromPool], [FromDB] and [FromConnector] make a Locker that connects as a pool, a *sql.DB or a connector does. Open
// one Locker per process. For a lock that lasts as long as a transaction, no Locker is needed:
//
//	err := pg.LockTx(ctx, tx, "orders/17") // tx is a pgx.Tx; for a *sql.Tx or a *sqlx.Tx it is pg.SQLTx(tx)
//
// # What ends a lock
//
// A session lock lasts until the first of these:
//   - Release.
//   - The end of the connection that it was taken on: the process ended, the connection broke, the server restarted
//     or failed over, or somebody called pg_terminate_backend.
//   - The session TTL ([WithSessionTTL]): the server ends a session that was silent for so long
//     (idle_session_timeout). So it frees the locks of a process that is stopped or cut off. While a session waits, and
//     until its next statement, mostly some milliseconds after the wait, this is 3 s at most.
//
// PostgreSQL 12 and 13 have no idle_session_timeout. There TCP keepalives and tcp_user_timeout free the locks of a
// client that was cut off, a little later than the TTL; behind a pooler, when that notices it. A process that is merely
// stopped keeps its locks until it goes on. A Locker logs a warning when it first meets such a server.
//
// # How the holder learns of it
//
// When its connection ends, the lock's context ends with sqllock.ErrLost as soon as the Locker sees it. For a
// connection that was closed this takes milliseconds.
//
// A Locker sends a heartbeat on each session every third of the TTL, or every 5 s if that is sooner. When nothing was
// confirmed for 5/6 of the TTL, the locks' contexts end with sqllock.ErrLost. The time is counted on this process's
// monotonic clock, from the sending of the last confirmed statement, so the contexts end before the server frees the
// locks.
//
// On Linux this deadline also passes while the machine is suspended, and the contexts end within a second of the
// resume. Elsewhere (macOS, Windows, BSD) Go's monotonic clock may stand still meanwhile, and the contexts end with the
// next heartbeat.
//
// # Failovers
//
// An advisory lock does not survive a failover, and nothing is written to a table. So synchronous replication does not
// protect it. If the old primary goes on serving after a standby was promoted, a holder that is still connected to it
// learns nothing, while others take the lock on the new primary. Only fencing of the old primary closes that gap.
//
// # What is refused
//
// Before it grants anything, a Locker refuses (sqllock.ErrRefused) a server where an advisory lock would not exclude
// others:
//   - a connection pooler in between, unless [WithSessionPooling] says that it pools sessions and a test does not find
//     otherwise;
//   - a standby (sqllock.ErrReadOnly, too, since it may pass);
//   - CockroachDB;
//   - PostgreSQL before version 12.
//
// It does not recognise pgpool-II, which shows clients the server's own process id, as the server does. The command
// sqllock doctor does. Connections of a *sql.DB that send cancel requests (pgx's CancelRequestContextWatcherHandler),
// or that wrap those of pgx, are sqllock.ErrUnsupported.
//
// # Transaction locks
//
// [LockTx] and [TryLockTx] take the same locks for a transaction of the caller's. Such a lock ends with the
// transaction, needs no connection of its own, and works behind a pooler that pools transactions. It has no context:
// when its connection ends, the work of the transaction is undone. At REPEATABLE READ and above see the warning at
// LockTx.
//
// # Shared locks
//
// [WithShared] takes a share of a lock. The goroutines of a Locker hold one share on the server together, because a
// session that holds a share gets more of them past every waiter. No goroutine joins that share while another one, or
// another process, waits for the exclusive lock. A goroutine that joins asks the server about other processes, every 20
// ms at most.
//
// # Keys
//
// A name becomes a 64-bit key, see [Key]. [WithKey] and [WithPair] take the keys of other programs. Advisory locks
// belong to one database of the server: the same name in another database is another lock.
//
// # Inspecting and terminating
//
// [Locker.Inspect] returns the holders of a lock and the number of waiters. [Locker.List] returns every advisory lock
// of the database, by its key. [Locker.Terminate] ends the session that holds a lock, with every lock on it. Without
// pg_read_all_stats, Address and Since of other roles' sessions are not known.
//
// # What it costs
//
// A Locker opens connections of its own, at most 20 ([WithMaxConnections]), and never takes one from the
// application's pool. In pg_stat_activity their application_name begins with "sqllock/".
//
// Locks that were free when they were requested share one connection, 600 locks at most. Requests of many goroutines at
// the same time go in one statement, as a batch. A wait for a lock that another process holds takes a dedicated
// connection. The lock then stays on it until it is released, and the connection is kept for the next wait for 5 s.
//
// # How it works inside
//
// The goroutines of one process that want the same lock wait in a queue in memory, first come first served. A release
// hands the lock to the next waiter without asking the server. After 8 handoffs or 20 ms another process gets the lock
// if one waits. A handoff relies on what is known about the connection: if the server ended it milliseconds ago,
// Release still returns nil, and the next holder learns of the loss.
//
// A wait blocks in the server's own queue, in slices of less than 2 s. So the holder can run CREATE INDEX
// CONCURRENTLY, which waits for every transaction older than itself. Meanwhile a waiter holds a second key, the gate,
// or waits for it. So the next holder is decided, and the chances of the other waiters rise with the time that they
// wait. A waiter that is cut off leaves the queue at the end of its slice. If it has the gate, or was granted the key, it
// loses that three seconds later at most (on PostgreSQL 12 and 13, when TCP notices).
//
// While the server looks for a deadlock in a long queue, nobody gets a lock of any kind. So no more than 64 waiters for the
// exclusive lock, 64 for shares, and the one that is next stand in the queue of a lock for longer than 5 s. The others sleep,
// look for a place every 2 to 5 s, in no order, and are not in Holder.Waiters. A deadlock_timeout of less than a second makes
// the server look more often.
//
// Two Lockers that each wait for a lock of the other wait until a context ends: the locks are held on other sessions
// than the waits, and the server sees no deadlock. Acquire several locks with sqllock.AcquireAll.
package pg
