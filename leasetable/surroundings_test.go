package leasetable_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/schema"
	"github.com/sqllock/sqllock/sqltest"
)

// with returns db's DSN with additional parameters.
func with(db *sqltest.Database, parameters string) string {
	if strings.Contains(db.DSN, "?") {
		return db.DSN + "&" + parameters
	}
	return db.DSN + "?" + parameters
}

func open(t *testing.T, driverName, dsn string) *sqlx.DB {
	t.Helper()
	db, err := sqlx.Open(driverName, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // the test is over, so an error does not matter
	return db
}

func TestLeasesAreAsEverWhateverTheSettings(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		var odd locktest.Odd
		if db.Engine == sqltest.EnginePostgres {
			odd = locktest.OddPostgres().On(t, db.DB.DB)
			odd.Together = append(odd.Together, "client_encoding=LATIN1", "client_encoding=SQL_ASCII")
		} else {
			odd = locktest.OddMySQL(t, db.DB.DB)
		}
		odd.Each(t, db.DSN, func(t *testing.T, dsn, setting string) {
			at := surroundings{db: db, pool: open(t, db.DriverName(), dsn), name: setting + ": \x00\xff'\"\\%_`é☕"}
			at.pool.SetMaxIdleConns(-1) // connections that the server ends are the application's concern
			owner := "Zoë ☕"
			if strings.Contains(setting, "client_encoding") { // it also changes the meaning of the application's texts
				owner = "Zoe"
			}
			at.odd = newLocker(t, at.pool, leasetable.WithTTL(time.Hour), leasetable.WithOwner(owner))
			at.plain = newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
			at.live(t, owner)
			if !strings.Contains(setting, "max_join_size=1") { // it prevents the application from reading the catalogue
				at.apply(t)
			}
		})
	})
}

// surroundings is a database, and settings of connections to it.
type surroundings struct {
	db         *sqltest.Database
	pool       *sqlx.DB           // with the settings
	odd, plain *leasetable.Locker // with and without the settings
	name       string             // of a lock, and the prefix of other names
}

func (s surroundings) holdAndSee(t *testing.T, owner string) {
	t.Helper()
	const metadata = "\x00\xff'\"\\é☕"
	lease := take(t, s.odd, s.name, leasetable.WithMetadata(metadata))
	mustBeHeld(t, s.odd, s.name)
	if h := mustBeHeld(t, s.plain, s.name); h.Owner != owner || h.Metadata != metadata || h.Token != 1 || time.Until(h.Until) < 50*time.Minute {
		t.Errorf("the holder is shown as %+v", h)
	}
	mustRenew(t, lease)
	mustVerify(t, lease)
	if err := lease.SetMetadata(t.Context(), ""); err != nil {
		t.Error(err)
	}
	if h := mustBeHeld(t, s.odd, s.name); h.Owner != owner || h.Metadata != "" {
		t.Errorf("the holder sees itself as %+v", h)
	}
	both := make([][]leasetable.Info, 2)
	for i, l := range []*leasetable.Locker{s.odd, s.plain} {
		infos, err := l.List(t.Context(), s.name)
		if err != nil || len(infos) != 1 {
			t.Fatalf("List: %+v, %v", infos, err)
		}
		infos[0].Holder.Until = time.Time{} // it counts from the time of the query
		both[i] = infos
	}
	if !reflect.DeepEqual(both[0], both[1]) || both[0][0].Name != s.name || both[0][0].Holder.Owner != owner {
		t.Errorf("List: %+v and %+v", both[0], both[1])
	}
	release(t, lease)
}

// handOver hands a name off within one process and between two.
func (s surroundings) handOver(t *testing.T) {
	t.Helper()
	leases := []*leasetable.Lease{take(t, s.odd, s.name)}
	next := line(t, s.odd, s.name, 2)
	for n := range 3 {
		lease := leases[n]
		if h := mustBeHeld(t, s.plain, s.name); h.Token < lease.Token() {
			t.Errorf("token %d is seen as %d", lease.Token(), h.Token)
		}
		mustVerify(t, lease)
		if n == 2 {
			break
		}
		release(t, lease)
		leases = append(leases, mustGet(t, next))
	}
	for _, l := range []*leasetable.Locker{s.plain, s.odd} {
		next := make(chan *leasetable.Lease, 1)
		go func() {
			lock, err := l.Acquire(context.Background(), s.name)
			if err != nil {
				t.Error(err)
			}
			next <- lock
		}()
		eventually(t, func() bool {
			info, err := l.Inspect(t.Context(), s.name)
			return err == nil && !info.WaiterSince.IsZero()
		})
		release(t, leases[len(leases)-1])
		leases = append(leases, mustGet(t, next))
	}
	release(t, leases[len(leases)-1])
	mustRise(t, leases...)
}

// moveOn extends a lease, and hands it over to another process.
func (s surroundings) moveOn(t *testing.T) {
	t.Helper()
	lease := take(t, s.odd, s.name)
	if err := lease.Extend(t.Context(), 3*time.Hour); err != nil || lease.Remaining() < 2*time.Hour {
		t.Errorf("Extend: %v; %v are left", err, lease.Remaining())
	}
	ticket, err := lease.Export(t.Context(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	adopted, err := s.plain.Adopt(t.Context(), ticket, leasetable.WithMetadata("adopted"))
	if err != nil {
		t.Fatal(err)
	}
	if ticket, err = adopted.Export(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	again, err := s.odd.Adopt(t.Context(), ticket)
	if err != nil {
		t.Fatal(err)
	}
	if h := mustBeHeld(t, s.plain, s.name); h.Metadata != "adopted" {
		t.Errorf("adopted twice: %+v", h)
	}
	mustRise(t, lease, adopted, again)
	release(t, again)
}

// together lets several holders share a name, and then one hold it alone.
func (s surroundings) together(t *testing.T) {
	t.Helper()
	two := leasetable.WithLimit(2)
	first, second := take(t, s.odd, s.name+"!", two), take(t, s.plain, s.name+"!", two)
	for _, l := range []*leasetable.Locker{s.odd, s.plain} {
		if _, err := l.TryAcquire(t.Context(), s.name+"!", two); !errors.Is(err, sqllock.ErrHeld) {
			t.Errorf("a third of two: %v", err)
		}
		infos, err := l.List(t.Context(), s.name+"!")
		if err != nil || len(infos) != 1 || len(infos[0].Holders) != 2 || infos[0].Limit != 2 {
			t.Errorf("two of two: %+v, %v", infos, err)
		}
	}
	release(t, first, second)
	alone := take(t, s.odd, s.name+"!")
	release(t, alone)
	third := take(t, s.odd, s.name+"!", two)
	mustRise(t, first, second, alone, third)
	if was, err := s.odd.ForceRelease(t.Context(), s.name+"!"); err != nil || !was.Held {
		t.Errorf("ForceRelease: %+v, %v", was, err)
	}
	release(t, take(t, s.plain, s.name+"!", leasetable.WithShared()))
}

// many acquires many names at once, which uses other statements.
func (s surroundings) many(t *testing.T) {
	t.Helper()
	for _, n := range []int{3, 40} {
		names := make([]string, n)
		want := make(map[string]int64)
		for i := range names {
			names[i] = fmt.Sprint(s.name, " of ", n, ": ", i)
			want[names[i]] = 1
		}
		l := newLocker(t, s.pool, leasetable.WithTTL(time.Hour))
		if took, err := leasetable.TakeMany(t.Context(), l, names); err != nil || !maps.Equal(took, want) {
			t.Errorf("took %v, %v", took, err)
		}
		if took, err := leasetable.TakeMany(t.Context(), s.plain, names); err != nil || len(took) != 0 {
			t.Errorf("took %v that are held, %v", took, err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		var leases []*leasetable.Lease
		for _, name := range names {
			leases = append(leases, take(t, s.odd, name))
		}
		freed, err := leasetable.FreeMany(t.Context(), s.odd, leases)
		if err != nil || len(freed) != n {
			t.Errorf("freed %v, %v", freed, err)
		}
	}
}

// keep keeps a name after its release, until a forced release.
func (s surroundings) keep(t *testing.T) {
	t.Helper()
	lease := take(t, s.odd, s.name, leasetable.WithHoldAtLeast(time.Hour))
	release(t, lease)
	mustBeHeld(t, s.odd, s.name)
	mustBeHeld(t, s.plain, s.name)
	if was, err := s.odd.ForceRelease(t.Context(), s.name); err != nil || !was.Held {
		t.Errorf("ForceRelease: %+v, %v", was, err)
	}
	next := take(t, s.plain, s.name)
	mustRise(t, lease, next)
	release(t, next)
}

// guard guards a transaction of the application; the name cannot be taken over meanwhile.
func (s surroundings) guard(t *testing.T) {
	t.Helper()
	for _, opts := range [][]sqllock.Option{nil, {leasetable.WithShared()}} {
		name := fmt.Sprint(s.name, opts != nil)
		lease := take(t, s.odd, name, opts...)
		guarded := func() (err error) {
			eventually(t, func() bool { // a time limit in the DSN can hit a statement, or the transaction
				var tx *sqlx.Tx
				if tx, err = s.pool.BeginTxx(t.Context(), nil); err != nil {
					return false
				}
				if err = lease.Guard(t.Context(), leasetable.SQLTx(tx)); err == nil {
					err = tx.Commit()
				}
				_ = tx.Rollback() // after the commit it does nothing
				return err == nil || errors.Is(err, sqllock.ErrLost)
			})
			return err
		}
		if err := guarded(); err != nil {
			t.Errorf("Guard: %v", err)
		}
		if _, err := s.plain.ForceRelease(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		if err := guarded(); !errors.Is(err, sqllock.ErrLost) {
			t.Errorf("Guard of a name that was taken away: %v", err)
		}
	}
}

// takeOver takes a name over from a dead holder, and deletes the dead lease.
func (s surroundings) takeOver(t *testing.T) {
	t.Helper()
	dead := newLocker(t, s.db.DB, leasetable.WithTTL(time.Hour))
	lease := take(t, dead, s.name)
	run(t, s.db, "UPDATE sqllock_lease SET expires_at = created_at WHERE id = ?", leaseOf(t, s.db, s.name))
	next := take(t, s.odd, s.name)
	mustRise(t, lease, next)
	release(t, next)
	take(t, newLocker(t, s.db.DB, leasetable.WithTTL(time.Hour)), s.name+"?")
	run(t, s.db, "UPDATE sqllock_lease SET expires_at = created_at WHERE id = ?", leaseOf(t, s.db, s.name+"?"))
	if _, err := s.odd.Purge(t.Context(), 0); err != nil {
		t.Errorf("Purge: %v", err)
	}
	if info, err := s.odd.Inspect(t.Context(), s.name+"?"); err != nil || info.Held || info.Expired {
		t.Errorf("after a purge: %+v, %v", info, err)
	}
}

// apply creates other tables.
func (s surroundings) apply(t *testing.T) {
	t.Helper()
	d, err := schema.DialectOf(s.db.DriverName())
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(s.name))
	tables := schema.Tables{Prefix: "t" + hex.EncodeToString(sum[:6]) + "_"}
	defer func() {
		if err != nil {
			t.Error(err)
		}
	}()
	eventually(t, func() bool { // a time limit in the DSN can hit statements that wait for each other
		err = schema.Apply(t.Context(), s.pool.DB, d, tables)
		return err == nil || errors.Is(err, sqllock.ErrSchema)
	})
	if err := errors.Join(err, schema.Check(t.Context(), s.pool.DB, d, tables), schema.Check(t.Context(), s.db.DB.DB, d, tables)); err != nil {
		t.Error(err)
	}
	release(t, take(t, newLocker(t, s.pool, leasetable.WithTables(tables)), "x"))
}

func TestADatabaseThatCannotBeWrittenIsReadOnly(t *testing.T) {
	t.Parallel()
	readOnly := map[sqltest.Engine]string{
		sqltest.EnginePostgres: "default_transaction_read_only=on",
		sqltest.EngineMySQL:    "transaction_read_only=1",
		sqltest.EngineMariaDB:  "tx_read_only=1",
		sqltest.EngineSQLite:   "mode=ro",
	}
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, open(t, db.DriverName(), with(db, readOnly[db.Engine])))
		if _, err := l.TryAcquire(t.Context(), "x"); !errors.Is(err, sqllock.ErrReadOnly) {
			t.Errorf("TryAcquire: %v; want ErrReadOnly", err)
		}
	})
}

func TestMissingTablesAreErrSchemaWithTheCommand(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB, leasetable.WithTables(schema.Tables{Prefix: "missing_"}))
		for _, acquire := range []func(context.Context, string, ...sqllock.Option) (*leasetable.Lease, error){l.TryAcquire, l.Acquire} {
			_, err := acquire(t.Context(), "x")
			if !errors.Is(err, sqllock.ErrSchema) || !strings.Contains(err.Error(), "sqllock schema apply") || !strings.Contains(err.Error(), "--prefix") {
				t.Errorf("without tables: %v", err)
			}
		}
	})
}

// As a column that another tool has added.
func TestAColumnThatMustBeNamedIsErrSchema(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB)
		run(t, db, "ALTER TABLE sqllock_lock ADD COLUMN tenant INT NOT NULL")
		if _, err := l.TryAcquire(t.Context(), "x"); !errors.Is(err, sqllock.ErrSchema) || sqllock.IsRetryable(err) {
			t.Errorf("TryAcquire: %v", err)
		}
	})
}

func TestTablesMayHaveAnotherPrefix(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		tables := schema.Tables{Prefix: "other_"}
		d, err := schema.DialectOf(db.DriverName())
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Apply(t.Context(), db.DB.DB, d, tables); err != nil {
			t.Fatal(err)
		}
		other := newLocker(t, db.DB, leasetable.WithTables(tables))
		take(t, other, "x")
		take(t, newLocker(t, db.DB), "x") // another table means another lock
		mustBeHeld(t, newLocker(t, db.DB, leasetable.WithTables(tables)), "x")
		release(t, take(t, other, "y", leasetable.WithLimit(2)), take(t, other, "y", leasetable.WithLimit(2)))
		release(t, take(t, other, "y"))
	})
}

func TestTablesMayBeInASchemaThatIsNotSearched(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	tables := schema.Tables{Schema: "apart"}
	run(t, db, "CREATE SCHEMA apart")
	if err := schema.Apply(t.Context(), db.DB.DB, schema.Postgres, tables); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", "nowhere", "public"} {
		l := newLocker(t, open(t, "pgx", with(db, "search_path="+url.QueryEscape(`"`+path+`"`))), leasetable.WithTables(tables))
		lease := take(t, l, "x")
		tx, err := db.BeginTxx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(lease.Guard(t.Context(), leasetable.SQLTx(tx)), tx.Commit()); err != nil {
			t.Errorf("search_path %q: %v", path, err)
		}
		mustVerify(t, lease)
		takeAll(t, l, "all", 10)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// In an old database everybody may create operators and functions in the schema public. They would run as the user of the
// leases.
func TestNoLeaseUsesWhatOthersPutIntoTheSearchPath(t *testing.T) {
	t.Parallel()
	db := tables.Postgres(t)
	locktest.Traps(t, db.DB.DB, "internal/store/sql/postgres/*.sql", "internal/store/sql/postgres/parts/*.sql")
	for mode, opts := range map[string][]leasetable.Option{"cache_statement": nil, "exec": {leasetable.WithDurableRelease()}, "simple_protocol": nil} {
		at := surroundings{db: db, pool: open(t, "pgx", with(db, "default_query_exec_mode="+mode)), name: mode}
		at.odd = newLocker(t, at.pool, append(opts, leasetable.WithTTL(time.Hour), leasetable.WithOwner(mode))...)
		at.plain = newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
		at.live(t, mode)
		at.waitForAll(t)
	}
}

// live does with leases what users do.
func (s surroundings) live(t *testing.T, owner string) {
	t.Helper()
	s.holdAndSee(t, owner)
	s.handOver(t)
	s.moveOn(t)
	s.together(t)
	s.many(t)
	s.keep(t)
	s.guard(t)
	s.takeOver(t)
}

// waitForAll waits for the whole of a name that is shared.
func (s surroundings) waitForAll(t *testing.T) {
	t.Helper()
	share := take(t, s.plain, s.name, leasetable.WithShared())
	next := make(chan error, 1)
	go func() {
		lease, err := s.odd.Acquire(t.Context(), s.name)
		if err == nil {
			err = lease.Release(t.Context())
		}
		next <- err
	}()
	eventually(t, func() bool {
		return count(t, s.db, "SELECT count(*) FROM sqllock_lock WHERE exclusive_waiter_until IS NOT NULL") == 1
	})
	release(t, share)
	if err := receive(t, next); err != nil {
		t.Error(err)
	}
}

func TestAServerThatIsNotThereIsRetryable(t *testing.T) {
	t.Parallel()
	for driverName, dsn := range map[string]string{
		"pgx":   "postgres://u:sesame@127.0.0.1:1/d?connect_timeout=5",
		"mysql": "u:sesame@tcp(127.0.0.1:1)/d",
	} {
		_, err := newLocker(t, open(t, driverName, dsn)).TryAcquire(t.Context(), "x")
		if !sqllock.IsRetryable(err) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: %v", driverName, err)
		}
	}
}

func TestTheApplicationsPoolIsLeftAlone(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		own := open(t, db.DriverName(), db.DSN)
		own.SetMaxOpenConns(1)
		tx, err := own.BeginTxx(t.Context(), nil) // takes the only connection
		if err != nil {
			t.Fatal(err)
		}
		l := newLocker(t, own)
		held := take(t, l, "x")
		waiter := newLocker(t, own)
		waited := make(chan error, 1)
		go func() {
			lock, err := waiter.Acquire(context.Background(), "x")
			if err == nil {
				err = lock.Release(context.Background())
			}
			waited <- err
		}()
		var one int
		if err := tx.GetContext(t.Context(), &one, "SELECT 1"); err != nil {
			t.Error(err)
		}
		if err := held.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-waited; err != nil {
			t.Error(err)
		}
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
		if n := own.Stats().OpenConnections; n != 1 {
			t.Errorf("the application's pool has %d connections", n)
		}
	})
}
