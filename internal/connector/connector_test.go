package connector_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sqllock/sqllock/internal/connector"
)

type plain struct{}

func (plain) Connect(context.Context) (driver.Conn, error) { return nil, errors.New("not here") }
func (plain) Driver() driver.Driver                        { return nil }

// This fails when database/sql keeps its connector elsewhere.
func TestTheConnectorOfADBIsFound(t *testing.T) {
	t.Parallel()
	db := sql.OpenDB(plain{})
	defer db.Close()
	if c, err := connector.Of(db); err != nil || c != (plain{}) {
		t.Fatalf("Of = %v, %v", c, err)
	}
}

func TestADBThatTakesItsConnectionsFromAPoolIsRefused(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), "postgres://127.0.0.1:1/nowhere") // connects when it is used
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	if _, err := connector.Of(db); err == nil || !strings.Contains(err.Error(), "pg.FromPool") {
		t.Errorf("Of = %v", err)
	}
	c := stdlib.GetPoolConnector(pool)
	for _, wrapper := range []driver.Connector{
		embedding{c}, &keeping{inner: c}, &keeping{inner: embedding{&keeping{inner: c}}}, keeping{concrete: &keeping{inner: c}},
	} {
		if err := connector.Check(wrapper); err == nil || !strings.Contains(err.Error(), "pg.FromPool") {
			t.Errorf("%+v: %v", wrapper, err)
		}
	}
	own := stdlib.OpenDB(*pool.Config().ConnConfig)
	defer own.Close()
	if _, err := connector.Of(own); err != nil {
		t.Errorf("without a pool: %v", err)
	}
}

// embedding and keeping are connectors of libraries that wrap others.
type (
	embedding struct{ driver.Connector }
	keeping   struct {
		inner    driver.Connector
		concrete *keeping
	}
)

func (k keeping) Connect(ctx context.Context) (driver.Conn, error) { return k.inner.Connect(ctx) }
func (k keeping) Driver() driver.Driver                            { return k.inner.Driver() }

func TestAConnectorThatWrapsNoPoolIsAccepted(t *testing.T) {
	t.Parallel()
	itself := &keeping{inner: stdlib.GetConnector(pgx.ConnConfig{})}
	itself.concrete = itself
	for _, c := range []driver.Connector{embedding{}, &keeping{}, (*keeping)(nil), embedding{plain{}}, itself} {
		if err := connector.Check(c); err != nil {
			t.Errorf("%T: %v", c, err)
		}
	}
}

// function is a connector that is no struct.
type function func()

func (function) Connect(context.Context) (driver.Conn, error) { return nil, errors.New("no") }
func (function) Driver() driver.Driver                        { return nil }

func TestAConnectorMayBeOfAnyType(t *testing.T) {
	t.Parallel()
	db := sql.OpenDB(function(func() {}))
	defer db.Close()
	if _, err := connector.Of(db); err != nil {
		t.Error(err)
	}
}

func TestANilDBIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := connector.Of(nil); err == nil {
		t.Error("no error")
	}
}

// This fails when pgx keeps that elsewhere.
func TestWherePgxNotesTheLastUseOfAConnectionIsFound(t *testing.T) {
	t.Parallel()
	if connector.LastReset(&stdlib.Conn{}) == nil {
		t.Error("not found")
	}
	if connector.LastReset(nil) != nil {
		t.Error("found in nothing")
	}
}

func TestWhatIsNotOfPgxHasNoModeOfPgx(t *testing.T) {
	t.Parallel()
	for _, of := range []any{plain{}, &sql.Tx{}, struct{ Conn func() }{}} {
		if mode := connector.Unprepared(of); mode != nil {
			t.Errorf("Unprepared(%T) = %v", of, mode)
		}
	}
}

func TestAStatementThatWasPreparedElsewhereIsRecognised(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{"26000": true, "42P05": true, "42P01": false} {
		if got := connector.Misprepared(fmt.Errorf("look: %w", &pgconn.PgError{Code: code})); got != want {
			t.Errorf("Misprepared(%s) = %v", code, got)
		}
	}
	if connector.Misprepared(driver.ErrBadConn) || connector.Misprepared(nil) {
		t.Error("an error without a code is one")
	}
}
