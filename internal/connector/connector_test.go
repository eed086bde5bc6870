package connector_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"

	"github.com/sqllock/sqllock/internal/connector"
)

type plain struct{}

func (plain) Connect(context.Context) (driver.Conn, error) { return nil, errors.New("not here") }
func (plain) Driver() driver.Driver                        { return nil }

// pooled looks like the connector of pgx's stdlib.OpenDBFromPool.
type pooled struct {
	plain
	pool *int
}

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
	for name, c := range map[string]driver.Connector{"value": pooled{pool: new(int)}, "pointer": &pooled{pool: new(int)}} {
		db := sql.OpenDB(c)
		if _, err := connector.Of(db); err == nil {
			t.Errorf("%s: no error", name)
		}
		_ = db.Close()
	}
	db := sql.OpenDB(pooled{})
	defer db.Close()
	if _, err := connector.Of(db); err != nil {
		t.Errorf("without a pool: %v", err)
	}
}

func TestANilDBIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := connector.Of(nil); err == nil {
		t.Error("no error")
	}
}
