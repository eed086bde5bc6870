// Package migratelock gives a database driver of golang-migrate (github.com/golang-migrate/migrate/v4) a lock of sqllock
// instead of its own: of N processes that migrate the same database at the same time, one does, and the others wait and
// find it done.
//
// # Use
//
// On PostgreSQL; package mysql is for MySQL and MariaDB, and leasetable for all databases, SQLite too:
//
//	locker, err := pg.FromDB(db)
//	if err != nil {
//		return err
//	}
//	defer locker.Close()
//
//	driver, err := pgx.WithInstance(db, &pgx.Config{}) // of migrate/v4/database/pgx/v5
//	if err != nil {
//		return err
//	}
//	m, err := migrate.NewWithInstance("iofs", source, "app", migratelock.Wrap(driver, locker, "migrations"))
//
// The lock replaces that of the driver, which is not taken by Lock any more. For mysql set NoLock in the driver's
// configuration, so that its constructor does not take it either.
//
// # What it does better
//
//   - migrate abandons a driver that waits for its lock for longer than 15 s. The driver's own lock may then be granted to
//     nobody, and stays taken. This one gives up before that.
//   - A process that waits for the driver's own lock of PostgreSQL makes CREATE INDEX CONCURRENTLY of the process that
//     migrates fail with a deadlock. One that waits for this lock does not.
//   - SQLite's driver excludes only callers that share the driver. A lease excludes other processes.
//
// # What ends the lock
//
// migrate releases it when Up, Down, Steps, Migrate, Force or Drop has finished, and Close does when the migration that is
// under way has finished. Otherwise the lock ends as its kind of lock does: see packages pg, mysql and leasetable. A killed
// process does not keep it.
//
// # When it does not protect
//
// The migration that is under way when the lock is lost goes on, because migrate's drivers cannot be interrupted; another
// process may begin to migrate meanwhile. No other migration follows it: Run, SetVersion and Drop fail with the loss
// (sqllock.ErrLost, sqllock.ErrExpired). The version stays marked as dirty, unless another process has changed it: see what
// was applied, and use Force. Unlock returns the loss too, and a Migrate whose Unlock has failed cannot lock again. Make a
// new one.
//
// Migrate.Version takes no lock, with any driver.
//
// Drop removes all tables of the database. If the lease tables are among them, the lock is gone, and Unlock fails with
// sqllock.ErrSchema. For Drop use session locks, or keep the lease tables in another database.
//
// # Beside the driver's own lock
//
// The driver's own lock does not exclude this one. While some processes still use it on PostgreSQL, take the advisory lock
// that it takes:
//
//	id, err := database.GenerateAdvisoryLockId("app", "public", "schema_migrations") // database, schema, table of versions
//	key, err := strconv.ParseInt(id, 10, 64)
//	driver = migratelock.Wrap(driver, locker, "migrations", pg.WithKey(key))
//
// A driver for pgx that was opened by a URL takes the database from its path, with the slash: "/app".
//
// The constructor of a driver for PostgreSQL takes the driver's own lock for a moment, to create the table of versions. So
// while a process migrates under that lock, or under its key, the constructor waits for it, and a migration with CREATE
// INDEX CONCURRENTLY can fail as before.
//
// # SQLite
//
// A SQLite file has one writer at a time. If the lease tables are in the file that is migrated, a migration that takes
// longer than 5/6 of the TTL (12.5 s by default) keeps the lease from being renewed, and the lock ends with
// sqllock.ErrExpired. Use a longer TTL (sqllock.WithTTL), or keep the lease tables in another file.
package migratelock
