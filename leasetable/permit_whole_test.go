package leasetable_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/leasetable/internal/memory"
	"github.com/sqllock/sqllock/leasetable/internal/store"
	"github.com/sqllock/sqllock/sqltest"
)

// refusals returns statements that make changes of a table fail, and allow them again. Except on PostgreSQL the failing
// statement is not the first one of its transaction.
func refusals(db *sqltest.Database, event, table string) (refuse, allow string) {
	body := "SIGNAL SQLSTATE '45000'"
	switch db.Engine {
	case sqltest.EnginePostgres:
		return "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$;" +
			"CREATE TRIGGER refuse BEFORE " + event + " ON " + table + " FOR EACH ROW EXECUTE FUNCTION refuse()", "DROP FUNCTION refuse CASCADE"
	case sqltest.EngineSQLite:
		body = "BEGIN SELECT RAISE(ABORT, 'no'); END"
	}
	return "CREATE TRIGGER refuse BEFORE " + event + " ON " + table + " FOR EACH ROW " + body, "DROP TRIGGER refuse"
}

// I31.
func TestAPermitIsTakenAsAWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l, limit := newLocker(t, db.DB), leasetable.WithLimit(3)
		release(t, take(t, newLocker(t, db.DB), "x", limit))
		refuse, allow := refusals(db, "INSERT", "sqllock_permit")
		run(t, db, refuse)
		for _, name := range []string{"x", "new"} {
			if _, err := l.TryAcquire(t.Context(), name, limit); err == nil || errors.Is(err, sqllock.ErrHeld) {
				t.Errorf("%s: the error is %v", name, err)
			}
		}
		run(t, db, allow)
		for _, name := range []string{"x", "new"} {
			if info, err := l.Inspect(t.Context(), name); err != nil || info.Held {
				t.Errorf("%s: %+v, %v", name, info, err)
			}
			release(t, take(t, newLocker(t, db.DB), name, limit))
		}
	})
}

// I34.
func TestAllPermitsAreFreedByForceOrNone(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l, admin := newLocker(t, db.DB), newLocker(t, db.DB)
		lease := take(t, l, "x", leasetable.WithLimit(3))
		refuse, allow := refusals(db, "UPDATE", "sqllock_lease") // where the notice for the holder is written
		run(t, db, refuse)
		if _, err := admin.ForceRelease(t.Context(), "x"); err == nil {
			t.Error("ForceRelease: no error")
		}
		run(t, db, allow)
		if info, err := admin.Inspect(t.Context(), "x"); err != nil || info.Token != lease.Token() || len(info.Holders) != 1 {
			t.Errorf("Info = %+v, %v", info, err)
		}
		if forced, err := leasetable.ForcePermits(t.Context(), admin, "x", lease.Token()-1); forced || err != nil {
			t.Errorf("permits were freed of which somebody has taken one in between: %t, %v", forced, err)
		}
		mustVerify(t, lease)
		release(t, lease)
	})
}

// slowToClear is a database that takes a second to clear a permit.
type slowToClear struct{ *memory.Store }

func (s slowToClear) ClearPermit(ctx context.Context, name string, permit store.State) (bool, error) {
	pass(time.Second)
	return s.Store.ClearPermit(ctx, name, permit)
}

// A holder of many shares is dead. A try for the whole name does not go on until the last of them is cleared.
func TestATryForTheWholeNameEndsThoughManyDeadShareIt(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.MySQL)
		dead := keep(t, &scripted{Store: server.Store(), renew: notRenewed})
		for range 100 {
			take(t, dead, "x", leasetable.WithShared())
		}
		pass(2 * time.Second)
		l := keep(t, slowToClear{server.Store()}, leasetable.WithTTL(time.Minute))
		began := time.Now()
		if _, err := l.TryAcquire(t.Context(), "x"); !sqllock.IsRetryable(err) || errors.Is(err, sqllock.ErrHeld) {
			t.Fatalf("the error is %v", err)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("it took %v", took)
		}
		lock, err := l.Acquire(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		release(t, lock)
	})
}
