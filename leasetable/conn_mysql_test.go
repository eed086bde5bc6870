package leasetable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// The test also fails if the driver hides its socket, because each statement then waits for a goroutine twice.
func TestAStatementOnMySQLEndsWithItsContext(t *testing.T) {
	t.Parallel()
	servers := map[string]func(sqltest.TB, ...sqltest.Option) *sqltest.Database{"MySQL": tables.MySQL, "MariaDB": tables.MariaDB}
	on(t, servers, func(t *testing.T, db *sqltest.Database) {
		counted, _ := counting(t, db)
		lockers := map[string]*leasetable.Locker{
			"plain":      newLocker(t, db.DB),
			"of another": newLocker(t, counted), // another driver, whose socket is unknown
		}
		if db.Engine == sqltest.EngineMySQL { // this server has created a certificate for itself
			lockers["TLS"] = newLocker(t, open(t, db.DriverName(), strings.Replace(db.DSN, "?", "?tls=skip-verify&", 1)))
		}
		var mark int
		for name, l := range lockers {
			work := leasetable.Work(l)
			if known := leasetable.KnowsSocket(t, l); known == (name == "of another") {
				t.Errorf("%s: the socket is known: %v", name, known)
			}
			for seconds, args := range map[string][]any{"60": nil, "?": {60}} {
				mark++
				marked := fmt.Sprintf("/* %d */", mark)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() {
					_, err := work.ExecContext(ctx, "DO "+marked+" SLEEP("+seconds+")", args...)
					ended <- err
				}()
				eventually(t, func() bool {
					return count(t, db, "SELECT count(*) FROM "+processes+
						" WHERE DB = DATABASE() AND ID <> CONNECTION_ID() AND INFO LIKE '%"+marked+"%'") > 0
				})
				cancel()
				if err := <-ended; !errors.Is(err, context.Canceled) {
					t.Errorf("%s, %s: %v", name, seconds, err)
				}
				kill(t, db, "INFO LIKE '%"+marked+"%'")
				if _, err := work.ExecContext(t.Context(), "DO 1"); err != nil {
					t.Errorf("%s, %s: %v", name, seconds, err)
				}
			}
		}
	})
}

func TestATriggerThatHidesTheTokenIsNamed(t *testing.T) {
	t.Parallel()
	onMySQL(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB)
		release(t, take(t, l, "x"))
		run(t, db, "CREATE TABLE audit (name VARBINARY(1024))")
		run(t, db, "CREATE TRIGGER audited AFTER UPDATE ON sqllock_lock FOR EACH ROW INSERT INTO audit VALUES (NEW.name)")
		if _, err := l.Acquire(t.Context(), "x"); !errors.Is(err, sqllock.ErrRefused) || !strings.Contains(err.Error(), "drop the trigger") {
			t.Errorf("Acquire: %v", err)
		}
		run(t, db, "DROP TRIGGER audited")
		release(t, take(t, l, "x"))
	})
}
