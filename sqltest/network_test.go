package sqltest_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/sqltest"
)

// onNetworks runs a test on each kind of server, with a table goods of one row, and a pool through a new network.
func onNetworks(t *testing.T, test func(t *testing.T, db *sqltest.Database, network *sqltest.Network, far *sqlx.DB)) {
	t.Helper()
	for _, engine := range serverEngines {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			db := engines[engine](t)
			mustExec(t, db.DB, "CREATE TABLE goods (n int PRIMARY KEY, name varchar(40))")
			mustExec(t, db.DB, "INSERT INTO goods VALUES (0, 'zero')")
			network := db.Network(t)
			test(t, db, network, openFar(t, db, network))
		})
	}
}

func openFar(t *testing.T, db *sqltest.Database, network *sqltest.Network) *sqlx.DB {
	t.Helper()
	far, err := sqlx.Open(db.DriverName(), network.DSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = far.Close() })
	return far
}

func mustExec(t *testing.T, db sqlx.ExecerContext, statement string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// goods returns the number of rows.
func goods(t *testing.T, db sqlx.QueryerContext) (n int) {
	t.Helper()
	if err := sqlx.GetContext(t.Context(), db, &n, "SELECT count(*) FROM goods"); err != nil {
		t.Fatal(err)
	}
	return n
}

// insert returns a statement with a row as its arguments, in the driver's own form.
func insert(db *sqltest.Database) string {
	return db.Rebind("INSERT INTO goods (n, name) VALUES (?, ?)")
}

func TestACutNetworkTellsNobodyAndForgetsNothing(t *testing.T) {
	t.Parallel()
	onNetworks(t, func(t *testing.T, db *sqltest.Database, network *sqltest.Network, far *sqlx.DB) {
		mustExec(t, far, insert(db), 1, "before")
		network.Cut()
		done := make(chan error, 2)
		go func() {
			_, err := far.ExecContext(t.Context(), insert(db), 2, "on an open connection")
			done <- err
		}()
		go func() {
			_, err := openFar(t, db, network).ExecContext(t.Context(), insert(db), 3, "on a new connection")
			done <- err
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := far.ExecContext(ctx, insert(db), 4, "given up"); err == nil {
			t.Error("an answer came through a cut network")
		}
		if got := goods(t, db); got != 2 || len(done) > 0 {
			t.Errorf("%d rows, %d answers", got, len(done))
		}
		network.Heal()
		for range cap(done) {
			if err := <-done; err != nil {
				t.Errorf("after the cut: %v", err)
			}
		}
	})
}

func TestARefusedClientIsLetInAgain(t *testing.T) {
	t.Parallel()
	onNetworks(t, func(t *testing.T, _ *sqltest.Database, network *sqltest.Network, far *sqlx.DB) {
		for range 2 {
			conn, err := far.Connx(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			network.Refuse()
			if err := conn.PingContext(t.Context()); err == nil {
				t.Error("an open connection was not ended")
			}
			if _, err := net.Dial("tcp", network.Address()); err == nil || !strings.Contains(err.Error(), "refused") {
				t.Errorf("a new connection: %v", err)
			}
			network.Refuse()
			network.Heal()
			_ = conn.Close()
			goods(t, far)
		}
	})
}

func TestAClientThatIsDisconnectedConnectsAgain(t *testing.T) {
	t.Parallel()
	onNetworks(t, func(t *testing.T, db *sqltest.Database, network *sqltest.Network, far *sqlx.DB) {
		conn, err := far.Connx(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		before := network.Connections()
		network.Disconnect()
		if err := conn.PingContext(t.Context()); err == nil {
			t.Error("the connection was not ended")
		}
		eventually(t, "the server is told", func() bool { return sessions(t, db) == 0 })
		if goods(t, far); network.Connections() <= before {
			t.Errorf("%d connections after %d", network.Connections(), before)
		}
	})
}

// sessionTable is the table of sessions on MySQL and MariaDB. MySQL's information_schema.PROCESSLIST fails while the
// statement of any session has a parameter that is not UTF-8.
const sessionTable = "/*!80022 performance_schema.processlist */ /*M! information_schema.PROCESSLIST */"

// sessions returns the number of sessions in db, besides those of db itself.
func sessions(t *testing.T, db *sqltest.Database) (n int) {
	t.Helper()
	db.SetMaxOpenConns(1)
	query := "SELECT count(*) - 1 FROM " + sessionTable + " WHERE db = DATABASE()"
	if db.Engine == sqltest.EnginePostgres {
		query = "SELECT count(*) - 1 FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'"
	}
	if err := db.GetContext(t.Context(), &n, query); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestALostConnectionKeepsItsLocksOnTheServer(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*sqltest.Network){"half-open": (*sqltest.Network).HalfOpen, "forgotten": (*sqltest.Network).Forget} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onNetworks(t, func(t *testing.T, db *sqltest.Database, network *sqltest.Network, far *sqlx.DB) {
				tx, err := far.BeginTxx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				mustExec(t, tx, "UPDATE goods SET n = 7")
				lose(network)
				if name == "half-open" {
					if _, err := tx.ExecContext(t.Context(), "UPDATE goods SET n = 8"); err == nil {
						t.Error("the client was not told")
					}
				}
				// The lost session has a lock on the row, and the new connection waits for it.
				done := make(chan error, 1)
				go func() {
					_, err := far.ExecContext(t.Context(), "UPDATE goods SET n = 9")
					done <- err
				}()
				eventually(t, "the new connection waits", func() bool { return sessions(t, db) == 2 && waits(t, db) })
				ended := make(chan struct{}, 1)
				go func() {
					_ = tx.Rollback() // does not arrive
					ended <- struct{}{}
				}()
				if name == "half-open" {
					<-ended
				}
				if len(done)+len(ended) > 0 {
					t.Error("the row was not locked, or the client was told")
				}
				network.Heal()
				if err := <-done; err != nil {
					t.Error(err)
				}
				if name == "forgotten" {
					<-ended
				}
			})
		})
	}
}

// waits reports whether an UPDATE is running.
func waits(t *testing.T, db *sqltest.Database) bool {
	t.Helper()
	query := "SELECT count(*) FROM " + sessionTable + " WHERE db = DATABASE() AND info LIKE 'UPDATE%'"
	if db.Engine == sqltest.EnginePostgres {
		query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
	}
	var n int
	return db.GetContext(t.Context(), &n, query) == nil && n > 0
}

func TestADelayIsForEachRoundTrip(t *testing.T) {
	t.Parallel()
	onNetworks(t, func(t *testing.T, _ *sqltest.Database, network *sqltest.Network, far *sqlx.DB) {
		goods(t, far)
		const roundTrip = 150 * time.Millisecond
		network.Delay(roundTrip)
		before, begin := network.Requests(), time.Now()
		goods(t, far)
		took, trips := time.Since(begin), network.Requests()-before
		if took < roundTrip*time.Duration(trips) || trips == 0 {
			t.Errorf("%d round trips took %v", trips, took)
		}
		network.Heal()
		goods(t, far)
	})
}

func TestAThrottleSlowsWhatIsLarge(t *testing.T) {
	t.Parallel()
	onNetworks(t, func(t *testing.T, _ *sqltest.Database, network *sqltest.Network, far *sqlx.DB) {
		goods(t, far)
		const size, perSecond = 20_000, 50_000
		network.Throttle(perSecond)
		begin := time.Now()
		var got string
		if err := far.GetContext(t.Context(), &got, "SELECT REPEAT('x', 20000)"); err != nil || len(got) != size {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
		if took := time.Since(begin); took < time.Second*size/perSecond*9/10 {
			t.Errorf("%d bytes arrived in %v", size, took)
		}
		network.Throttle(0)
		goods(t, far)
	})
}

func TestANetworkLeadsToAnotherServer(t *testing.T) {
	t.Parallel()
	server := sqltest.Start(t, sqltest.EnginePostgres)
	here := sqltest.Postgres(t)
	there := server.Database(t)
	network := here.Network(t)
	far := openFar(t, here, network)
	if err := far.PingContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	network.SwitchTo(there)
	if err := far.PingContext(t.Context()); err == nil {
		t.Error("a server that does not know the password has let it in")
	}
	network.SwitchTo(here)
	if err := far.PingContext(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestSQLiteHasNoNetwork(t *testing.T) {
	t.Parallel()
	db, tb := sqltest.SQLite(t), newFakeTB(t.Name())
	tb.run(func() { db.Network(tb) })
	if !strings.Contains(tb.fatal, "no network") {
		t.Errorf("failed with %q", tb.fatal)
	}
}
