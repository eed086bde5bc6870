// Package gooselock runs the migrations of goose (github.com/pressly/goose/v3) under a lock of sqllock: of N processes
// that migrate the same database at the same time, one does, and the others wait and find it done.
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
//	p, err := goose.NewProvider(goose.DialectPostgres, db, migrations, goose.WithLocker(gooselock.New(locker, "migrations")))
//
// The lock has connections of its own. It takes none from db, so it also works with db.SetMaxOpenConns(1), if no Go
// migration runs without a transaction: goose needs a second connection for that. A release wakes the waiters; goose's own
// lockers look again every 5 s.
//
// # What ends the lock
//
// goose releases it when Up, Down or another command of the Provider has finished. Otherwise the lock ends as its kind of
// lock does: see packages pg, mysql and leasetable. A killed process does not keep it.
//
// # When it does not protect
//
// A goose Provider cannot be interrupted by its locker. If the lock is lost, the migration that is under way goes on, and
// so do those after it, while another process may begin to migrate. The command then returns the loss (sqllock.ErrLost,
// sqllock.ErrExpired) beside its other errors. To interrupt the migrations instead, give goose no locker, and run it in
// [sqllock.Do], whose context ends with the lock:
//
//	err := sqllock.Do(ctx, locker, "migrations", func(ctx context.Context) error {
//		_, err := p.Up(ctx)
//		return err
//	})
//
// Provider.HasPending and GetVersions take no lock, with any locker. Status and GetDBVersion do: they wait while another
// process migrates.
//
// # Beside goose's own lockers
//
// goose's own session locker and table locker do not exclude this one. While some processes still use
// lock.NewPostgresSessionLocker, take the same advisory lock that it takes:
//
//	gooselock.New(locker, "migrations", pg.WithKey(lock.DefaultLockID))
//
// # SQLite
//
// A SQLite file has one writer at a time. If the lease tables are in the file that is migrated, a transaction that
// migrates for longer than 5/6 of the TTL (12.5 s by default) keeps the lease from being renewed. The lock then ends with
// sqllock.ErrExpired, which the command returns although the migration was applied. Nobody else can migrate before that
// transaction has ended. Give such migrations a longer TTL (sqllock.WithTTL), or keep the lease tables in another file.
package gooselock
