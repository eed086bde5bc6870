package mysql_test

import (
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/internal/refusal"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/sqltest"
)

// I49.
func TestServersThatWouldNotExcludeOthersAreRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ variable, value, seen string }{
		{"wsrep_on", "ON", "Galera"},
		{"group_replication_group_name", "8a94f357-aab4-11df-86ab-c80aa9429562", "replication group"},
		{"read_only", "ON", "read-only"},
		{"read_only", "1", "read-only"},
		{"read_only", "NO_LOCK", "read-only"}, // MariaDB 12
		{"innodb_read_only", "ON", "read-only"},
		{"version", "5.7.44-log", "older"},
		{"version", "8.0.21", "older"},
		{"version", "10.5.29-MariaDB", "older"},
		{"version", "8.0.11-TiDB-v8.5.1", "TiDB"},
		{"version_comment", "TiDB Server (Apache License 2.0) Community Edition, MySQL 8.0 compatible", "TiDB"},
		{"version", "8.0.30-Vitess", "Vitess"},
	} {
		mustSayWhy(t, mysql.Refuse(map[string]string{test.variable: test.value}), test.seen)
	}
	for _, variables := range []map[string]string{
		{},
		{"wsrep_on": "OFF", "read_only": "OFF", "innodb_read_only": "OFF", "group_replication_group_name": ""},
		{"wsrep_on": "0", "read_only": "off"},
		{"version": "8.0.22"},
		{"version": "10.6.0-MariaDB-log"},
		{"version": "something else"},
	} {
		if err := mysql.Refuse(variables); err != nil {
			t.Errorf("%v: %v", variables, err)
		}
	}
}

func TestWhatServersAnswerWithGetLockSaysWhetherTheyAreReadOnly(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		answer driver.Value
		want   bool
	}{
		{int64(0), false},
		{int64(1), true},
		{[]byte("OFF"), false}, // MariaDB 12
		{[]byte("ON"), true},
		{[]byte("NO_LOCK_NO_ADMIN"), true},
	} {
		if got := mysql.IsReadOnly(test.answer); got != test.want {
			t.Errorf("%v: %t", test.answer, got)
		}
	}
}

// MySQL cannot be started so by sqltest, which sets its password at each start; the statements were tried on one by hand.
func TestAServerWhoseInnoDBIsReadOnlyIsRefused(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqltest.Start(t, sqltest.EngineMariaDB, sqltest.Setting("innodb-read-only", "ON")).Database(t)
	var readOnly, granted string
	if err := db.QueryRowContext(t.Context(), "SELECT @@GLOBAL.read_only, GET_LOCK('a', 0)").Scan(&readOnly, &granted); err != nil {
		t.Fatal(err)
	}
	if readOnly != "0" || granted != "1" {
		t.Fatalf("read_only is %s, and GET_LOCK answers %s; want 0 and 1", readOnly, granted)
	}
	_, err := newLocker(t, db).TryAcquire(t.Context(), "a")
	mustSayWhy(t, err, "read-only")
}

func mustSayWhy(t *testing.T, err error, seen string) {
	t.Helper()
	var refused *refusal.Error
	if !errors.Is(err, sqllock.ErrRefused) || !errors.As(err, &refused) {
		t.Fatalf("the error is %v; want a *refusal.Error", err)
	}
	passes := strings.HasPrefix(refused.Seen, "the server is read-only") // a replica may be promoted
	if !strings.Contains(refused.Seen, seen) || refused.Instead == "" || sqllock.IsRetryable(err) != passes ||
		errors.Is(err, sqllock.ErrReadOnly) != passes {
		t.Errorf("the error says %q", err)
	}
}
