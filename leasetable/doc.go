// Package leasetable takes leases: locks that are rows of a table, on PostgreSQL, MySQL, MariaDB and SQLite.
//
// # Use
//
// The tables come from sqllock schema apply, or from package schema. Then:
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
// The program imports the driver. [New] tells from the DSN which one is meant:
//
//	postgres://user:password@host:5432/database, or host=… dbname=…    github.com/jackc/pgx/v5/stdlib
//	user:password@tcp(host:3306)/database                              github.com/go-sql-driver/mysql (MariaDB, too)
//	file:path.db                                                       modernc.org/sqlite
//
// [FromDB] and [FromConnector] make a Locker that connects as a *sql.DB or a connector does. Of a *sqlx.DB pass its
// field DB. For a pgx pool it is FromConnector(pg.Connector(pool)). Open one Locker per process.
//
// [Locker.Acquire] and [Locker.TryAcquire] return a *[Lease]. sqllock.Do, DoWith and TryDo take a *Locker as it is;
// sqllock.AnyKind makes a sqllock.Locker of it.
//
// # What ends a lock
//
// A lock lasts until the first of these:
//   - Release, or Close of its Locker.
//   - Its expiry: nobody has renewed it for the TTL ([WithTTL], sqllock.WithTTL).
//   - The loss of its lease row: somebody deleted it, or the database's clock jumped ahead and another took the lock
//     over.
//
// # What the holder is told
//
// The Locker renews in the background. When no renewal was confirmed for 5/6 of the TTL, the lock's context ends with
// sqllock.ErrExpired. The time is counted on this process's monotonic clock, from the sending of the last renewal
// that was confirmed. The database lets others in when the TTL has passed on its own clock, which is later.
//
// When the lease row is lost, the next renewal finds out, and the context ends with sqllock.ErrLost. The other holder
// has a higher token.
//
// # Suspended machines
//
// On Linux a deadline also passes while the machine is suspended: the clock CLOCK_BOOTTIME is asked at least once a
// second while a lock is held, so the holder is told within a second of the resume. Elsewhere (macOS, Windows, BSD)
// Go's monotonic clock may stand still during a suspension. There a holder that was suspended learns of the loss at
// its next renewal after the resume. Use [Lease.Verify] or [Lease.Guard] before what matters.
//
// # Tokens and guards
//
// Every acquisition of a name gets a higher token than all before it, because the row of a name is kept when the lock
// is released. A resource that remembers the highest token it has seen, and refuses lower ones, cannot be changed by
// a holder that was paused for too long. [Lease.Token] returns it; every lock of this package is a *Lease.
//
// For rows of the same database [Lease.Guard] does it without a token: what a guarded transaction writes is written
// by the holder or not at all.
//
//	err := lease.Guard(ctx, leasetable.SQLTx(tx)) // leasetable.PgxTx(tx) for a pgx.Tx
//
// [Lease.Verify] asks the database whether the lease still holds its name.
//
// # Restarts and failovers
//
// A lease survives the end of a connection, a restart of the database, and a failover as far as its rows do. After an
// asynchronous failover, or a crash with synchronous_commit off, the database may have forgotten:
//   - a release. The Locker makes it good when it connects again.
//   - an acquisition. The holder is told with the next renewal, which is on another connection then, and behind a
//     pooler, where it is not, at Release. Acquire what matters with synchronous commits.
//
// If the old primary goes on serving after an asynchronous failover, there are two databases. A holder that is still
// connected to the old one renews there and is told nothing, and another process acquires the name on the new one: an
// election has two leaders until the old primary stops. Synchronous replication closes this, since no renewal is
// confirmed without the standby, and so does fencing of the old primary. A guard keeps what is written in the
// database right, since the old primary's writes are lost; a token does so elsewhere.
//
// # While the database cannot be used
//
// [Locker.Acquire] and [Elector.Run] wait on while the database cannot be reached, restarts, has no connection left
// or is a standby, until their context ends, and tell the logger and the hook; see sqllock.Acquirer.
//
// # Shares and permits
//
// With [WithShared] any number of holders have a share of a name at the same time. With [WithLimit] a name is a
// semaphore: at most so many holders have a permit at the same time. If holders asked for different limits, the
// smallest of them counts. Shares and permits exclude a holder of the whole name, as readers exclude a writer. A name
// has either shares or permits: to ask for the other is a *[LimitError].
//
// Each share or permit is a *Lease with a token of its own, higher than all earlier tokens of the name, shared or
// not. Each ends by itself as above: a dead holder frees exactly one permit. While somebody waits for the whole name,
// nobody gets a share or permit; a waiter that died stands in the way of that for 5 s.
//
// # Elections
//
// An [Elector] keeps one leader among all processes that campaign for a name. [Elector.Run] waits for the lock, calls
// the function that leads, gives the name up when that has returned, and campaigns again when the lock was lost.
// [Elector.Observe] tells others who leads.
//
// # Metadata
//
// A name carries up to 1024 bytes of its holder's, for others to see ([WithMetadata], [Lease.SetMetadata]). The next
// acquisition replaces them. After a release they are shown only while the name is kept ([WithHoldAtLeast]).
//
// # Longer, and elsewhere
//
// [WithHoldAtLeast] keeps a name taken for a time after its acquisition though it was released: a job that N machines
// start at about the same time runs once, however short it is.
//
// [Lease.Extend] makes a lock last for a time without renewals, for a holder that is about to stall. [Lease.Renew]
// renews now, and [Lease.Remaining] says for how long the lock is sure to last.
//
// [Lease.Export] ends a lock here and returns a ticket for [Locker.Adopt], with which another process takes it on,
// with the next token. In between nobody has it; if nobody adopts it in time, the name is free.
//
// # Looking after the tables
//
// [Locker.List], and [Locker.Inspect] for one name, show what is held, what dead holders have left, and what somebody
// owns. [Locker.ForceRelease] takes a name away from its holders. [Locker.Purge] deletes what killed processes have
// left.
//
// # What it costs
//
// A Locker opens connections of its own, like those of the *sql.DB or connector it is made from: at most six for its
// statements, one for renewals, which nothing else can delay, and on PostgreSQL, while goroutines wait for other
// processes, one that hears of releases.
//
// One connection is enough. Where the server has no other one, or opening it takes longer than a second, statements
// borrow the connection for renewals one after the other, do not wait for locked rows on it for long, and let a
// renewal go first. What is not needed is given back: a connection after 5 s, the last one when the Locker holds
// nothing and has asked for nothing for so long, or for a second where the server is full. A Locker that holds a lock
// keeps one.
//
// Acquiring a free name and releasing it are one statement each. Goroutines that come at the same time share them, as
// a batch. A renewal is one statement for all locks of the same TTL, however many there are.
//
// # TTL and network
//
// A lease survives the end of all its connections if there is time to connect again and renew it: half of the TTL at
// worst, when they end as a renewal is due. On a network that is about twelve round trips, and some more with TLS, so
// the TTL should be at least 30 times the round trip: 15 s are enough for 500 ms, 3 s for 100 ms. A lease that ended
// because it was shorter says so. A TTL is not refused for that: a connection that took long to open may say more of
// a busy machine than of the network.
//
// # Poolers
//
// A Locker works behind a transaction pooler, where no releases are heard of, with the plain URL: on a connection of
// pgx that is not known to lead to PostgreSQL itself nothing is prepared. A driver that wraps pgx hides that, and
// needs default_query_exec_mode=exec in its URL; so does, for [Lease.Guard], a connection of the caller's, unless the
// pooler keeps prepared statements.
//
// What leaves a statement of its own uncommitted, as pgpool-II does in raw mode, is refused (sqllock.ErrRefused) by
// the statement that shows it, which may not be the first one.
//
// # Galera
//
// On a Galera cluster the Lockers may be on all nodes, and a Locker's connections on several. A node that was cut off
// from the others grants nothing and renews nothing: its holders are told in time, by their deadlines. Expiry goes by
// the clock of the node that is asked, so the clocks of the nodes have to agree to less than a sixth of the shortest
// TTL; where they do not, tokens and guards still hold. A guard changes the row of the name there, and changes it
// back: transactions that guard the same name come one after the other, and at its commit one can fail with a
// conflict (1213), as for rows of its own.
//
// # SQLite
//
// SQLite has to be a file, of version 3.42 or later: every connection to ":memory:" is a database of its own.
//
// # How it works inside
//
// A row of sqllock_lease is a promise with an expiry. A row of sqllock_lock is a name, its token and the lease that
// holds it (package schema has the tables). A name that several hold together has a row of sqllock_permit for each
// share or permit. A Locker keeps one lease row for every TTL in use, renewed by one statement however many locks
// hang on it.
//
// A name that other goroutines of the process wait for is handed to the next of them by one statement, with the next
// token.
//
// A name whose lease is over is taken over by up to three more statements: the state is read; its lease is deleted if
// it has expired; the name is claimed from exactly that lease. No statement ever decides by the row of another table
// that may have changed while it waited: the deletion and a renewal meet in the same row, and lease ids are never
// used again, so a lease that is gone is over for good.
//
// A share or permit is claimed by a read of all of them and one statement, or one transaction on MySQL, MariaDB and
// SQLite, on the condition that no other claim came since: every claim bumps the name's token.
package leasetable
