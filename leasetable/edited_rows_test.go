package leasetable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// edited is a row of a table that holds what this program does not write.
type edited struct {
	table string // sqllock_lock, or another one, for a name that is held
	set   string
}

// inTables is what the servers write in different ways.
type inTables struct {
	now, inAnHour string
	times         []string // that this program never writes
	bytes, text   func(hex string) string
	ids           []string // in hex, of leases that are not there
}

var written = map[string]inTables{
	"pgx": {
		now: "clock_timestamp()", inAnHour: "clock_timestamp() + interval '1 hour'",
		times: []string{"'infinity'", "'-infinity'", "'294276-12-31Z'", "'9999-12-31Z'", "'0001-01-01Z'", "'4713-01-02Z BC'"},
		bytes: func(hex string) string { return `'\x` + hex + `'` },
		text: func(hex string) string {
			return fmt.Sprintf(`convert_from('\x%s', 'utf8')`, strings.ReplaceAll(hex, "00", "01"))
		},
		ids: []string{"", "01", strings.Repeat("ff", 99)},
	},
	"mysql": {
		now: "UTC_TIMESTAMP(6)", inAnHour: "UTC_TIMESTAMP(6) + INTERVAL 1 HOUR",
		times: []string{"'0000-00-00'", "'0001-01-01'", "'9999-12-31 23:59:59.999999'"},
		bytes: func(hex string) string { return "x'" + hex + "'" },
		text:  func(hex string) string { return fmt.Sprintf("CONVERT(x'%s' USING utf8mb4)", hex) },
		ids:   []string{"", "01"},
	},
	"sqlite": {
		now: "CAST(unixepoch('subsec') * 1000000 AS INTEGER)", inAnHour: "CAST(unixepoch('subsec') * 1000000 AS INTEGER) + 3600000000",
		times: numbers,
		bytes: func(hex string) string { return "x'" + hex + "'" },
		text:  func(hex string) string { return fmt.Sprintf("CAST(x'%sff' AS TEXT)", hex) },
		ids:   []string{"", "01", strings.Repeat("ff", 99)},
	},
}

var numbers = []string{"-9223372036854775808", "-1", "0", "9223372036854775807"}

// all returns what can be wrong with one column, or with two that go together.
func (w inTables) all() (all []edited) {
	add := func(table, format string, values []string) {
		for _, value := range values {
			all = append(all, edited{table, fmt.Sprintf(format, value)})
		}
	}
	for _, column := range []string{"acquired_at", "released_at", "hold_until", "waiter_until", "permits = 2, exclusive_waiter_until"} {
		add("sqllock_lock", column+" = %s", w.times)
	}
	for _, column := range []string{"token", "permits", "waiter_until = " + w.inAnHour + ", waiter_since"} {
		add("sqllock_lock", column+" = %s", numbers)
	}
	for _, id := range w.ids {
		add("sqllock_lock", "lease_id = %s", []string{w.bytes(id)})
	}
	add("sqllock_lock", "metadata = %s", []string{w.bytes(strings.Repeat("00ff", 512))})
	for _, column := range []string{"created_at", "expires_at"} {
		add("sqllock_lease", column+" = %s", w.times)
	}
	for _, column := range []string{"pid", "ttl_us", "renewals", "changes"} {
		add("sqllock_lease", column+" = %s", numbers)
	}
	add("sqllock_lease", "owner = %s", []string{w.text("00410a1b5b"), w.text(strings.Repeat("41", 250))})
	add("sqllock_permit", "acquired_at = %s", w.times)
	add("sqllock_permit", "permits = %s", numbers)
	return all
}

// insert writes a row of this name with what is wrong with it.
func (e edited) insert(t *testing.T, exec func(statement string, args ...any), w inTables, name string, n byte) {
	t.Helper()
	key, id := []byte(name), []byte(strings.Repeat(string(rune(n)), 16))[:16]
	exec("INSERT INTO sqllock_lock (name, token, acquired_at) VALUES (?, 5, "+w.now+")", key)
	where, of := "name = ?", key
	switch e.table {
	case "sqllock_lease":
		where, of = "id = ?", id
		exec("UPDATE sqllock_lock SET lease_id = ? WHERE name = ?", id, key)
	case "sqllock_permit":
		exec("UPDATE sqllock_lock SET permits = 2 WHERE name = ?", key)
		exec("INSERT INTO sqllock_permit (name, token, lease_id, permits, acquired_at) VALUES (?, 5, ?, 2, "+w.now+")", key, id)
	}
	if e.table != "sqllock_lock" {
		exec("INSERT INTO sqllock_lease (id, owner, host, pid, ttl_us, created_at, expires_at) VALUES (?, 'o', 'h', 1, 15000000, "+
			w.now+", "+w.inAnHour+")", id)
	}
	exec("UPDATE "+e.table+" SET "+e.set+" WHERE "+where, of)
}

func insertEdited(t *testing.T, db *sqltest.Database) (names map[string]edited) {
	t.Helper()
	conn, err := db.Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	exec := func(statement string, args ...any) {
		t.Helper()
		if _, err := conn.ExecContext(t.Context(), db.Rebind(statement), args...); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	w := written[db.DriverName()]
	if db.DriverName() == "mysql" {
		exec("SET SESSION sql_mode = ''")
	}
	names = make(map[string]edited)
	for i, e := range w.all() {
		name := fmt.Sprintf("edited %s %.99s", e.table, e.set)
		names[name] = e
		e.insert(t, exec, w, name, byte(i+1))
	}
	return names
}

// A row that somebody has edited, or that a restore has brought, is in nobody's way but its own.
func TestARowOfAnotherHandHurtsNoOtherName(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		names := insertEdited(t, db)
		l := newLocker(t, db.DB)
		good := take(t, l, "good")
		infos, err := l.List(t.Context(), "")
		if _, failed := json.Marshal(infos); err != nil || failed != nil || len(infos) != len(names)+1 {
			t.Errorf("List = %d of %d names, %v; as JSON: %v", len(infos), len(names)+1, err, failed)
		}
		if _, err := l.Purge(t.Context(), time.Hour); err != nil {
			t.Errorf("Purge: %v", err)
		}
		for name, e := range names {
			t.Run(name, func(t *testing.T) { useEdited(t, l, name, e) })
		}
		if err := good.Verify(t.Context()); err != nil {
			t.Errorf("Verify of another name: %v", err)
		}
	})
}

// useEdited does with a name what a program and its operator do.
func useEdited(t *testing.T, l *leasetable.Locker, name string, e edited) {
	t.Helper()
	last := strings.Contains(e.set, "token = 9223372036854775807")
	unusable := strings.Contains(e.set, "token = -") || e.set == "waiter_until = '0000-00-00'" // until it is edited again
	info, err := l.Inspect(t.Context(), name)
	if _, failed := json.Marshal(info); err != nil || failed != nil {
		t.Fatalf("Inspect = %+v, %v; as JSON: %v", info, err, failed)
	}
	for _, opt := range []sqllock.Option{leasetable.WithShared(), leasetable.WithMetadata(""), leasetable.WithLimit(2), leasetable.WithMetadata("")} {
		if unusable {
			break
		}
		lock, err := l.Acquire(t.Context(), name, opt, sqllock.WithWait(20*time.Millisecond))
		var unlike *leasetable.SharingError
		switch {
		case last:
			if err == nil {
				t.Errorf("it was acquired with the token %d", lock.Token())
			}
		case err == nil:
			if lock.Token() <= info.Token || e.table == "sqllock_lease" && !strings.Contains(e.set, "expires_at") {
				t.Errorf("it was acquired with the token %d; %+v", lock.Token(), info)
			}
			if err := lock.Release(t.Context()); err != nil {
				t.Errorf("Release: %v", err)
			}
		case !errors.Is(err, sqllock.ErrHeld) && !errors.As(err, &unlike):
			t.Errorf("Acquire: %v", err)
		}
	}
	if _, err := l.ForceRelease(t.Context(), name); err != nil && !strings.Contains(e.set, "9223372036854775807") {
		t.Fatalf("ForceRelease: %v", err)
	}
	if last || unusable || strings.Contains(e.set, "changes = 9223372036854775807") {
		return
	}
	if err := take(t, l, name).Release(t.Context()); err != nil {
		t.Errorf("Release: %v", err)
	}
}

// A name has one holder or some with permits, unless somebody has edited its row.
func TestForceReleaseFreesANameThatIsHeldInTwoWays(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l, other := newLocker(t, db.DB), newLocker(t, db.DB)
		take(t, l, "x", leasetable.WithShared())
		take(t, l, "y")
		run(t, db, "UPDATE sqllock_lock SET lease_id = ? WHERE name = ?", leaseOf(t, db, "y"), []byte("x"))
		if was, err := other.ForceRelease(t.Context(), "x"); err != nil || !was.Held {
			t.Errorf("ForceRelease = %+v, %v", was, err)
		}
		take(t, other, "x")
	})
}

func TestANameThatSomebodyHasInsertedCanBeShared(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		run(t, db, "INSERT INTO sqllock_lock (name, token, acquired_at) VALUES (?, 0, "+written[db.DriverName()].now+")", []byte("x"))
		l := newLocker(t, db.DB)
		for range 2 {
			lock, err := l.TryAcquire(t.Context(), "x", leasetable.WithShared())
			if err != nil || lock.Token() == 0 {
				t.Fatalf("TryAcquire = %v, %v", lock, err)
			}
		}
	})
}

// A statement for many names fails if one of them has the last token that there is: the others are acquired all the same.
func TestANameWithoutATokenLeftFailsNoOthers(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB)
		names := []string{"last"}
		for i := range 15 {
			names = append(names, fmt.Sprint("other", i))
		}
		for _, name := range names {
			if err := take(t, l, name).Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		run(t, db, fmt.Sprintf("UPDATE sqllock_lock SET token = %d WHERE name = ?", int64(math.MaxInt64)), []byte("last"))
		for range 20 {
			var all sync.WaitGroup
			for _, name := range names {
				all.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					lock, err := l.Acquire(ctx, name)
					switch {
					case name == "last":
						if err == nil || errors.Is(err, sqllock.ErrHeld) || !strings.Contains(err.Error(), `"last"`) {
							t.Errorf("Acquire of the name without a token: %v", err)
						}
					case err != nil:
						t.Errorf("Acquire: %v", err)
					default:
						if err := lock.Release(ctx); err != nil {
							t.Errorf("Release: %v", err)
						}
					}
				})
			}
			all.Wait()
		}
	})
}
