package sqltest_test

import (
	"context"
	"database/sql"
	"testing"
	"testing/fstest"

	"github.com/sqllock/sqllock/sqltest"
)

// A test with two connections to one database.
func Example() {
	// In a real test this is func TestSomething(t *testing.T).
	_ = func(t *testing.T) {
		db := sqltest.Postgres(t)
		if _, err := db.Exec("CREATE TABLE greetings (word text)"); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec("INSERT INTO greetings VALUES ($1)", "hello"); err != nil {
			t.Fatal(err)
		}
		t.Logf("on %s, also reachable as %s", db.Server, db.DSN)
	}
}

// A test of a program whose server is down for a while.
func ExampleStart() {
	_ = func(t *testing.T) {
		server := sqltest.Start(t, sqltest.EngineMariaDB, sqltest.Setting("max_connections", "20"))
		db := server.Database(t)

		server.Kill()
		if err := db.PingContext(t.Context()); err == nil {
			t.Error("nobody should answer")
		}
		server.Start() // with the same address and data
		if err := db.PingContext(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A test of what the code under test does when it does not know whether a statement has run.
func ExampleNetwork() {
	_ = func(t *testing.T) {
		db := sqltest.Postgres(t)
		if _, err := db.Exec("CREATE TABLE orders (item text)"); err != nil {
			t.Fatal(err)
		}
		network := db.Network(t)
		shop, err := sql.Open("pgx", network.DSN)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = shop.Close() })

		lost := network.DropAnswer("INSERT INTO orders")
		if _, err := shop.Exec("INSERT INTO orders VALUES ($1)", "tea"); err == nil {
			t.Error("an order without an answer was confirmed")
		}
		<-lost.Answered() // it was inserted all the same
		var orders int
		if err := db.Get(&orders, "SELECT count(*) FROM orders"); err != nil || orders != 1 {
			t.Errorf("%d orders, %v", orders, err)
		}
	}
}

// Tests that begin with a migrated database. The files are usually in an embed.FS.
func ExampleSQLFiles() {
	shop := sqltest.SQLFiles(fstest.MapFS{
		"001_goods.sql": {Data: []byte("CREATE TABLE goods (name varchar(100) PRIMARY KEY)")},
		"002_seed.sql":  {Data: []byte("INSERT INTO goods VALUES ('tea'), ('milk')")},
	})
	_ = func(t *testing.T) {
		t.Parallel()
		db := shop.Postgres(t) // or MySQL, MariaDB, SQLite
		if _, err := db.Exec("DELETE FROM goods"); err != nil {
			t.Fatal(err) // no other test misses them
		}
	}
}

// A migration that is written in Go. The key changes with it.
func ExampleMigrated() {
	shop := sqltest.Migrated("shop 3", func(ctx context.Context, db *sqltest.Database) error {
		_, err := db.ExecContext(ctx, "CREATE TABLE goods (name varchar(100) PRIMARY KEY)")
		return err
	})
	_ = func(t *testing.T) {
		db := shop.MySQL(t)
		t.Log(db.DSN)
	}
}
