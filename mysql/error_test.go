package mysql_test

import (
	"database/sql"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of another database

	"github.com/sqllock/sqllock/mysql"
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
