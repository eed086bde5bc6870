package mysql_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver "mysql"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/mysql"
)

// A Locker from a DSN in the form of github.com/go-sql-driver/mysql: user:password@tcp(host:3306)/database. It connects
// when the first lock is asked for.
func ExampleNew() {
	if err := reindexTables(context.Background(), os.Getenv("DATABASE_URL")); err != nil {
		log.Fatal(err)
	}
}

func reindexTables(ctx context.Context, dsn string) error {
	locker, err := mysql.New(dsn, mysql.WithSessionTTL(10*time.Second), mysql.WithOwner("reindex"))
	if err != nil {
		return err
	}
	defer locker.Close()

	return sqllock.Do(ctx, locker, "reindex", func(ctx context.Context) error {
		log.Print("reindexing")
		return context.Cause(ctx) // nil while the lock is held
	})
}

// A Locker that connects like a *sql.DB. It takes no connection from the pool of the *sql.DB. A Locker from a DSN is
// faster.
func ExampleFromDB() {
	if err := migrateTables(context.Background(), os.Getenv("DATABASE_URL")); err != nil {
		log.Fatal(err)
	}
}

func migrateTables(ctx context.Context, dsn string) error {
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		return err
	}
	defer db.Close()

	locker, err := mysql.FromDB(db)
	if err != nil {
		return err
	}
	defer locker.Close()

	return sqllock.Do(ctx, locker, "migrations", func(ctx context.Context) error {
		_, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS reports (day DATE PRIMARY KEY, orders BIGINT)")
		return err // ctx ends if the lock is lost
	})
}

// The argument with which another program, in any language, calls GET_LOCK to acquire the lock "nightly report" in the
// database "shop".
func ExampleServerName() {
	fmt.Println(mysql.ServerName("shop", "nightly report"))
	// Output: sqllock_9bd352b0335f927f62fdf5bb229dc6b814faeb97fcef9412
}

// How to find the holder of a lock, and the number of its waiters.
func ExampleLocker_Inspect() {
	if err := showHolder(context.Background(), os.Getenv("DATABASE_URL")); err != nil {
		log.Fatal(err)
	}
}

func showHolder(ctx context.Context, dsn string) error {
	locker, err := mysql.New(dsn)
	if err != nil {
		return err
	}
	defer locker.Close()

	info, err := locker.Inspect(ctx, "migrations")
	if err == nil && info.Held {
		log.Printf("held by %s", info.Holder)
	}
	return err
}
