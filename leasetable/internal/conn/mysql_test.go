package conn_test

import (
	"context"
	"database/sql/driver"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock/leasetable/internal/conn"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
)

// forgetful is a connection to a proxy that gives each statement another session of the server.
type forgetful struct{ staged }

func (forgetful) PrepareContext(context.Context, string) (driver.Stmt, error) {
	return forgotten{}, nil
}

// forgotten is a statement that the session does not know.
type forgotten struct{ driver.Stmt }

var errForgotten = &mysql.MySQLError{Number: 1243, Message: "Unknown prepared statement handler"}

func (forgotten) ExecContext(context.Context, []driver.NamedValue) (driver.Result, error) {
	return nil, errForgotten
}

func (forgotten) QueryContext(context.Context, []driver.NamedValue) (driver.Rows, error) {
	return nil, errForgotten
}

func TestAConnectionWhosePreparedStatementsAreGoneIsUsedNoMore(t *testing.T) {
	t.Parallel()
	statements := map[string]func(conn.MySQLConn) error{
		"exec": func(c conn.MySQLConn) error {
			_, err := c.ExecContext(t.Context(), "UPDATE", make([]driver.NamedValue, 1))
			return err
		},
		"query": func(c conn.MySQLConn) error {
			rows, err := c.QueryContext(t.Context(), "SELECT", make([]driver.NamedValue, 1))
			if err == nil {
				_ = rows.Close() // it should not be there
			}
			return err
		},
	}
	for name, run := range statements {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := conn.NewMySQLConn(&forgetful{})
			if err := run(c); !dberr.OutcomeKnown(dberr.Classify(err)) || c.IsValid() {
				t.Errorf("%v; the connection is valid: %t", err, c.IsValid())
			}
		})
	}
}
