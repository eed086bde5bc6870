package mysql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	gomysql "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver of another database

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/sqltest"
)

func TestADBOfAnotherDriverIsRefused(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("pgx", "postgres://localhost/any")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := mysql.FromDB(db); err == nil || !strings.Contains(err.Error(), "go-sql-driver/mysql") {
		t.Errorf("FromDB = %v", err)
	}
	if _, err := mysql.FromDB(nil); err == nil {
		t.Error("FromDB(nil): no error")
	}
}

// logged is a connector of a library that wraps the driver's connections, and names the driver as its own. wrap makes
// a connection of the library.
type logged struct {
	driver.Connector
	wrap func(driver.Conn) driver.Conn
}

func (l logged) Connect(ctx context.Context) (driver.Conn, error) {
	dc, err := l.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return l.wrap(dc), nil
}

// plainConn has no statements with a context, and preparing has none that queries with one.
type (
	plainConn     struct{ driver.Conn }
	preparingConn struct {
		driver.Conn
		driver.ConnPrepareContext
	}
	plainStmt struct{ driver.Stmt }
)

func (c preparingConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	stmt, err := c.ConnPrepareContext.PrepareContext(ctx, query)
	return plainStmt{stmt}, err
}

func TestConnectionsThatWrapTooLittleOfTheDriversAreAnErrorWhichEndsAWait(t *testing.T) {
	t.Parallel()
	config, err := gomysql.ParseDSN(sqltest.MySQL(t).DSN)
	if err != nil {
		t.Fatal(err)
	}
	c, err := gomysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	for what, wrap := range map[string]func(driver.Conn) driver.Conn{
		"plainConn": func(dc driver.Conn) driver.Conn { return plainConn{dc} },
		"plainStmt": func(dc driver.Conn) driver.Conn { return preparingConn{dc, dc.(driver.ConnPrepareContext)} },
	} {
		l := closing(t)(mysql.FromConnector(logged{c, wrap}, mysql.WithLogger(nil)))
		_, err := l.TryAcquire(t.Context(), "a")
		if !errors.Is(err, sqllock.ErrUnsupported) || sqllock.IsRetryable(err) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: retryable: %t; %v", what, sqllock.IsRetryable(err), err)
		}
	}
}
