package sqltest_test

import (
	"testing"

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
		server := sqltest.Start(t, sqltest.EngineMariaDB, "max_connections=20")
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
