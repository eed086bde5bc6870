// Package leasetable takes leases: locks that are rows of a table, on PostgreSQL, MySQL, MariaDB and SQLite.
//
// # Use
//
// The command sqllock schema apply, or package schema, creates the tables. Then:
//
//	leases, err := leasetable.New("postgres://user:password@host:5432/database") // with _ "github.com/jackc/pgx/v5/stdlib"
//	if err != nil {
//		return err
//	}
//	defer leases.Close()
//
//	return sqllock.DoWith(ctx, leases, "the store", func(ctx context.Context, lease *leasetable.Lease) error {
//		return store(ctx, lease.Token()) // ctx ends if the lease is lost
//	})
//
// The program imports the driver. [New] chooses it by the form of the DSN:
//
//	postgres://user:password@host:5432/database, or host=… dbname=…    github.com/jackc/pgx/v5/stdlib
//	user:password@tcp(host:3306)/database                              github.com/go-sql-driver/mysql (MariaDB, too)
//	file:path.db                                                       modernc.org/sqlite
//
// [FromDB] and [FromConnector] make a Locker that connects as a *sql.DB or a connector does. For a *sqlx.DB pass its
// field DB. For a pgx pool pass pg.Connector(pool) to FromConnector. Open one Locker per process.
//
// [Locker.Acquire] and [Locker.TryAcquire] return a *[Lease]. sqllock.Do, DoWith, TryDo and TryDoWith accept a
// *Locker. sqllock.AnyKind turns it into a sqllock.Locker.
//
// # What ends a lock
//
// A lock lasts until the first of these:
//   - Release, or Close of its Locker.
//   - Its expiry: it was not renewed for the TTL ([WithTTL], sqllock.WithTTL).
//   - The loss of its lease row: the row was deleted, or the clock of the database jumped ahead and another holder took
//     the lock over.
//
// # How the holder learns of it
//
// The Locker renews in the background. When no renewal was confirmed for 5/6 of the TTL, the context of the lock ends
// with sqllock.ErrExpired. The time is counted on the monotonic clock of this process, from the sending of the last
// confirmed renewal. The database grants the lock to others when the TTL has passed on its own clock, which is later.
//
// When the lease row is lost, the next renewal detects it, and the context ends with sqllock.ErrLost. The new holder
// has a higher token.
//
// # Suspended machines
//
// On Linux a deadline also passes while the machine is suspended: while a lock is held, the Locker reads the clock
// CLOCK_BOOTTIME at least once a second, so the context ends within a second of the resume. Elsewhere (macOS, Windows,
// BSD) the monotonic clock of Go may stand still during a suspension. There the holder learns of the loss at the next
// renewal after the resume. Call [Lease.Verify] or [Lease.Guard] before important work.
//
// # Tokens and guards
//
// Every acquisition of a name gets a higher token than all before it, because the row of a name stays when the lock is
// released. A resource that remembers the highest token it has seen, and refuses lower ones, cannot be changed by a
// holder that was paused for too long. [Lease.Token] returns the token; every lock of this package is a *Lease.
//
// For rows of the same database, [Lease.Guard] does the same without a token: a guarded transaction is written by the
// holder, or not at all.
//
//	err := lease.Guard(ctx, leasetable.SQLTx(tx)) // leasetable.PgxTx(tx) for a pgx.Tx
//
// [Lease.Verify] asks the database whether the lease still holds its name.
//
// # Restarts and failovers
//
// A lease survives the end of a connection, a restart of the database, and a failover as far as its rows survive it.
// An asynchronous failover, or a crash with synchronous_commit off, may forget an acquisition. The next renewal detects
// that, behind a pooler only Release. While an old primary goes on serving, each of the two databases has holders of
// its own: see Failover in docs/operations.md.
//
// # Database outages
//
// [Locker.Acquire] and [Elector.Run] go on waiting while the database cannot be reached, restarts, has no connection
// left or is a standby, until their context ends. They report it to the logger and the hook; see sqllock.Acquirer.
//
// # Several names
//
// Two processes that each wait for a name of the other wait until a context ends: the database sees no deadlock. Acquire
// several names with sqllock.AcquireAll, or always in the same order.
//
// # Shares and permits
//
// With [WithShared] any number of holders have a share of a name at the same time. With [WithLimit] a name is a
// semaphore: at most that many holders have a permit at the same time. If holders requested different limits, the
// smallest counts. Shares and permits exclude a holder of the whole name, as readers exclude a writer. A name has
// either shares or permits: a request for the other is a *[SharingError].
//
// Each share or permit is a *Lease with its own token, which is higher than all earlier tokens of the name, shared or
// not. Each ends by itself as described above: a dead holder frees exactly one permit. While a waiter waits for the
// whole name, no share or permit is granted; a waiter that died delays them for 5 s.
//
// # Elections
//
// An [Elector] keeps one leader among all processes that campaign for a name. [Elector.Run] waits for the lock, calls
// the leader function, releases the name when that has returned, and campaigns again if the lock was lost.
// [Elector.Observe] reports the leader to other processes.
//
// # Metadata
//
// A holder can attach up to 1024 bytes to a name, for others to read ([WithMetadata], [Lease.SetMetadata]). The next
// acquisition replaces them. After a release they are shown only during the minimum hold ([WithHoldAtLeast]).
//
// # Minimum hold, extension and export
//
// [WithHoldAtLeast] sets a minimum hold: the name stays taken for that time after its acquisition, even if it is
// released earlier. So a job that N machines start at about the same time runs once, however short it is.
//
// [Lease.Extend] makes a lock last for a time without renewals, for a holder that is about to stall. [Lease.Renew]
// renews now. [Lease.Remaining] returns for how long the lock is sure to last.
//
// [Lease.Export] ends a lock here and returns a ticket. Another process passes it to [Locker.Adopt] to continue the
// lock, with the next token. In between the name has no holder. If it is not adopted in time, it is free.
//
// # Administration
//
// [Locker.List], and [Locker.Inspect] for one name, show held names, names that dead holders have left, and the names
// of one owner. [Locker.ForceRelease] takes a name away from its holders. [Locker.Purge] deletes the lease rows that
// killed processes have left.
//
// # What it costs
//
// A Locker opens connections of its own, at most 14 ([WithMaxConnections]): six for statements, one for renewals, and
// seven for waits. One is enough. Unused connections are closed: see Connections in docs/operations.md.
//
// Acquiring a free name and releasing it are one statement each, which goroutines share as a batch. A renewal is one
// statement for all locks of the same TTL.
//
// # TTL and network
//
// When its connections end, a lease has half of its TTL in the worst case to reconnect and renew. So the TTL should be
// at least 30 times the round trip: 15 s are enough for 500 ms, 3 s for 100 ms. If a lease ended because its TTL was
// shorter, its error says so: see Times in docs/which-lock.md.
//
// # Poolers
//
// A Locker works behind a transaction pooler with the plain URL, but waiters poll there. A driver that wraps pgx needs
// default_query_exec_mode=exec in its URL. So does the pgx connection that [Lease.Guard] runs on, unless the pooler
// keeps prepared statements. A proxy that leaves statements uncommitted is refused (sqllock.ErrRefused): see Poolers in
// docs/operations.md.
//
// # Galera
//
// Lockers may be on all nodes. The clocks of the nodes must agree to less than a sixth of the shortest TTL. A guard can
// fail at its commit with a conflict (1213), and permits have no guard there: see Clusters in docs/operations.md.
// Percona XtraDB Cluster is recognised as Galera, by what its documents say. It was not tried.
//
// # SQLite
//
// SQLite needs a file, as in "file:locks.db", and version 3.42 or later. Every connection to ":memory:" is a database of its
// own, so the Locker finds no tables there (sqllock.ErrSchema). A test names a file in its t.TempDir, or calls
// sqltest.SQLite.
//
// # How it works inside
//
// Package schema has the tables. docs/design.md has the protocol, and says why it keeps the promises above.
package leasetable
