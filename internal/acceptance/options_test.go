package acceptance_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/pg"
)

// There is no server: an option is refused before the Locker connects.
func TestAnOptionOfAnotherKindOfLockIsNamed(t *testing.T) {
	t.Parallel()
	db, err := sqlx.Open("sqlite", filepath.Join(t.TempDir(), "db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	leases, err := leasetable.FromDB(db.DB)
	if err != nil {
		t.Fatal(err)
	}
	postgres, err := pg.New("postgres://localhost/x")
	if err != nil {
		t.Fatal(err)
	}
	maria, err := mysql.New("tcp(localhost)/x")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(leases.Close(), postgres.Close(), maria.Close()) })
	for _, c := range []struct {
		locker sqllock.Locker
		option sqllock.Option
		named  string
	}{
		{sqllock.AnyKind(leases), pg.WithShared(), "pg.WithShared"},
		{maria, pg.WithKey(1), "pg.WithKey"},
		{postgres, leasetable.WithLimit(3), "leasetable.WithLimit"},
		{maria, leasetable.WithShared(), "leasetable.WithShared"},
		{maria, sqllock.WithTTL(time.Minute), "sqllock.WithTTL"},
	} {
		_, err := c.locker.TryAcquire(t.Context(), "x", c.option)
		if !errors.Is(err, sqllock.ErrUnsupported) || !strings.Contains(err.Error(), ": "+c.named) {
			t.Errorf("%v; want ErrUnsupported with %q", err, c.named)
		}
	}
}
