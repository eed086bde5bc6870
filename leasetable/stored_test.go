package leasetable_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// idOfAnother is the id of a lease row that version 1 has written.
var idOfAnother = []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

// storeRows writes rows as a program of version 1 does, which runs beside this one during a deployment or a rollback.
func storeRows(t *testing.T, db *sqltest.Database) {
	t.Helper()
	hour := inAnHour[db.Engine]
	run(t, db, "INSERT INTO sqllock_lease (id, owner, host, pid, ttl_us, created_at, expires_at) VALUES (?, 'owner', 'host', 7, 3600000000, "+hour+", "+hour+")", idOfAnother)
	lock := func(name, column, value string, args ...any) {
		t.Helper()
		run(t, db, "INSERT INTO sqllock_lock (name, token, acquired_at, "+column+") VALUES (?, 5, "+hour+", "+value+")", append([]any{[]byte(name)}, args...)...)
	}
	permit := func(name string, token, limit int64) {
		t.Helper()
		run(t, db, "INSERT INTO sqllock_permit (name, token, lease_id, permits, acquired_at) VALUES (?, ?, ?, ?, "+hour+")", []byte(name), token, idOfAnother, limit)
	}
	lock("held", "lease_id", "?", idOfAnother)
	lock("waited for", "lease_id, waiter_since, waiter_until", "?, 1700000000000000, "+hour, idOfAnother)
	lock("dead", "lease_id", "?", slices.Repeat([]byte{9}, 16)) // a lease without a row
	lock("kept", "hold_until", hour)
	lock("free", "released_at", hour)
	lock("shared", "permits", "0")
	permit("shared", 4, 0)
	permit("shared", 5, 0)
	lock("limited", "permits", "2")
	permit("limited", 5, 2)
}

// Programs of several versions share the tables, so what a row means must not change.
func TestTheRowsOfVersion1AreUnderstood(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		storeRows(t, db)
		l := newLocker(t, db.DB)

		h := mustBeHeld(t, l, "held")
		if h.Owner != "owner" || h.Host != "host" || h.PID != 7 || h.Token != 5 || h.TTL != time.Hour {
			t.Errorf("the holder is %+v", h)
		}
		mustBeHeld(t, l, "kept")
		for _, name := range []string{"free", "dead"} {
			if token := take(t, l, name).Token(); token != 6 {
				t.Errorf("the next token of the %s name is %d", name, token)
			}
		}
		if info, err := l.Inspect(t.Context(), "waited for"); err != nil || info.WaiterSince.UnixMicro() != 1700000000000000 {
			t.Errorf("somebody waits since %v, %v", info.WaiterSince, err)
		}

		for name, limit := range map[string]int{"shared": 0, "limited": 2} {
			info, err := l.Inspect(t.Context(), name)
			if err != nil || !info.Shared || info.Limit != limit || len(info.Holders) != 2-limit/2 || info.Holder.Owner != "owner" {
				t.Errorf("of the %s name Inspect says %+v, %v", name, info, err)
			}
			mustBeHeld(t, l, name)
		}
		if token := locktest.MustTry(t, l, "shared", leasetable.WithShared()).Token(); token != 6 {
			t.Errorf("the next share has token %d", token)
		}
		if token := locktest.MustTry(t, l, "limited", leasetable.WithLimit(3)).Token(); token != 6 {
			t.Errorf("the next permit has token %d", token)
		}
		if _, err := l.TryAcquire(t.Context(), "limited", leasetable.WithLimit(3)); !errors.Is(err, sqllock.ErrHeld) {
			t.Errorf("a third permit beside a limit of 2: %v", err)
		}
	})
}

func TestTheRowsAreThoseOfVersion1(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB, leasetable.WithOwner("me"), leasetable.WithTTL(time.Minute))
		take(t, l, "held", leasetable.WithMetadata("m\xff"))
		release(t, take(t, l, "kept", leasetable.WithHoldAtLeast(time.Hour)))
		release(t, take(t, l, "free"))
		take(t, l, "shared", leasetable.WithShared())
		take(t, l, "limited", leasetable.WithLimit(3))

		for what, query := range map[string]string{
			"the lease": "SELECT count(*) FROM sqllock_lease WHERE owner = 'me' AND ttl_us = 60000000 AND renewals = 0 AND changes = 0 AND length(id) = 16",
			"held": "SELECT count(*) FROM sqllock_lock k JOIN sqllock_lease l ON l.id = k.lease_id WHERE token = 1 AND permits IS NULL " +
				"AND released_at IS NULL AND hold_until IS NULL AND metadata = " + bytesLiteral(db, "6dff") + " AND name = " + bytesLiteral(db, "68656c64"),
			"kept":             "SELECT count(*) FROM sqllock_lock WHERE token = 1 AND lease_id IS NULL AND permits IS NULL AND released_at < hold_until",
			"free":             "SELECT count(*) FROM sqllock_lock WHERE token = 1 AND lease_id IS NULL AND permits IS NULL AND released_at IS NOT NULL AND hold_until IS NULL",
			"shared":           "SELECT count(*) FROM sqllock_lock WHERE token = 1 AND lease_id IS NULL AND permits = 0",
			"limited":          "SELECT count(*) FROM sqllock_lock WHERE token = 1 AND lease_id IS NULL AND permits = 3",
			"the share's row":  "SELECT count(*) FROM sqllock_permit p JOIN sqllock_lease l ON l.id = p.lease_id WHERE token = 1 AND permits = 0",
			"the permit's row": "SELECT count(*) FROM sqllock_permit p JOIN sqllock_lease l ON l.id = p.lease_id WHERE token = 1 AND permits = 3",
		} {
			if n := count(t, db, query); n != 1 {
				t.Errorf("%d rows are as version 1 writes %s", n, what)
			}
		}
	})
}

// bytesLiteral returns bytes in hex as a literal of the database.
func bytesLiteral(db *sqltest.Database, hex string) string {
	if db.Engine == sqltest.EnginePostgres {
		return `'\x` + hex + `'::bytea`
	}
	return "x'" + hex + "'"
}

// The process that adopts a ticket may be of another version than the one that exported it.
func TestTicketsAreThoseOfVersion1(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		storeRows(t, db)
		l := newLocker(t, db.DB)
		const ticket = "eyJ2IjoxLCJuIjoiYUdWc1pBPT0iLCJsIjoiQUFFQ0F3UUZCZ2NJQ1FvTERBME9Edz09IiwidCI6NX0" // {"v":1,"n":"aGVsZA==","l":"AAECAwQFBgcICQoLDA0ODw==","t":5}
		if token := takeOn(t, l, ticket).Token(); token != 6 {
			t.Errorf("the ticket gives token %d", token)
		}

		text, err := base64.RawURLEncoding.DecodeString(export(t, take(t, l, "x"), time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(text, &fields); err != nil {
			t.Fatal(err)
		}
		lease, err := base64.StdEncoding.DecodeString(fmt.Sprint(fields["l"]))
		if err != nil || len(lease) != 16 || fields["v"] != 1.0 || fields["n"] != "eA==" || fields["t"] != 1.0 {
			t.Errorf("a ticket is %s", text)
		}
		if names := slices.Sorted(maps.Keys(fields)); !slices.Equal(names, []string{"l", "n", "t", "v"}) {
			t.Errorf("a ticket has the fields %v", names)
		}
	})
}
