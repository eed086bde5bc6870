// Package sqllock takes locks in the SQL database that a program already has: PostgreSQL, MySQL, MariaDB or SQLite.
// This package has what all locks share: what a [Lock] is, what ends it, and the errors. Packages pg, mysql and
// leasetable take the locks.
//
// # Use
//
// Every server migrates when it starts. One of them does the work; the others wait and find it done:
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
// Open one Locker per process, not one per lock. The three packages construct it in the same way: New takes a
// connection string, FromDB a *sql.DB, FromConnector a driver.Connector, and pg.FromPool a pgx pool. A Locker opens
// connections of its own and never takes one from the application's pool.
//
//   - [Do] waits for the lock, calls a function and releases the lock.
//   - [DoWith] does the same and passes the lock to the function: its token, say, or its Guard.
//   - [TryDo] and [TryDoWith] call the function if the lock is free, and otherwise skip it: a job that N machines start
//     at the same time.
//   - [AcquireAll] takes several names and cannot deadlock with another AcquireAll.
//   - Acquire and TryAcquire of a Locker return the [Lock], for work that does not fit into one
//     function.
//   - [WithTTL] and [WithWait] are options for one acquisition. The packages have more.
//
// A function or a type that works with any kind of lock takes a [Locker]. A *pg.Locker and a *mysql.Locker are
// Lockers. [AnyKind] makes one of a *leasetable.Locker.
//
// # Which lock, and what ends it
//
//	kind          package       it ends when                                      behind a transaction pooler
//	session lock  pg, mysql     its connection, one of the Locker's own, ends,    pg: refused, with the reason;
//	                            or the server's session timeout passes, or        mysql: unsafe, not detectable
//	                            Release
//	lease         leasetable    its expiry passes without renewal, or Release     works
//
// A session lock needs no table. The server frees it as soon as the holder's connection is gone. Locks that were free when
// they were requested share one connection of the Locker, so they end together; a lock that was waited for because another
// process held it has one of its own. A lease is a row. It survives a restart of the database, works behind every pooler,
// and carries a fencing token that only ever rises: leasetable.Lease.Token returns it. pg.LockTx takes a third kind, a lock
// that lasts as long as the caller's transaction.
//
// # The life of a lock
//
//	         Acquire, TryAcquire
//	(free) ───────────────────────▶ held ──── Release ───▶ released   Context: ErrReleased
//	                                 │
//	                                 ├── the Locker was closed ──────────────▶ closed    ErrClosed
//	                                 │
//	                                 ├── the connection or the row is gone ──▶ lost      ErrLost
//	                                 │
//	                                 └── the deadline passed unrenewed ──────▶ expired   ErrExpired (a lease)
//	                                                                           lost      ErrLost (a session lock)
//
// Whatever ends a lock cancels its [Lock.Context], with the cause on the right. For Release, for Close and for a deadline,
// that happens before anybody else can hold the lock, but a process that is paused past its deadline learns of it only when
// it resumes. The deadline is counted on this process's own monotonic clock, from the moment the last confirmed statement
// was sent, and lies before the deadline that the server counts. When the server itself ends the session (it was restarted,
// or somebody terminated the connection), the Context ends within milliseconds; on Windows, for MySQL and MariaDB, within a
// second. Each package documents what its locks do in a failover, and while a machine is suspended.
//
// Locks are not re-entrant. A second acquisition of a held name waits (Acquire) or fails (TryAcquire), also within
// one process. A name is 1 to 1024 bytes, any bytes, compared byte by byte.
//
// # Errors
//
// Match errors with errors.Is: [ErrHeld] when somebody else holds the lock, [ErrLost] and, for a lease, [ErrExpired]
// when it ended before its release, [ErrRefused] when this kind of lock would not be safe on this server. A *[HeldError]
// describes the holder, as far as it is known. After an error of an acquisition the caller holds nothing. [IsRetryable]
// reports whether the same call may succeed later; Acquire waits through most such errors while its context lives.
//
// # Logs and metrics
//
// A Locker logs warnings, such as a lost lock, with slog.Default, unless WithLogger sets another logger. A hook (WithHook)
// gets each [Event]. Package event defines the kinds.
package sqllock
