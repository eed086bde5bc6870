package mysql_test

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/cluster"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/internal/refusal"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/sqltest"
)

// I49.
func TestServersThatWouldNotExcludeOthersAreRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ variable, value, seen string }{
		{"wsrep_provider", "/usr/lib/galera4/libgalera_smm.so", "Galera"}, // Percona XtraDB Cluster shows no global wsrep_on
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
		{"wsrep_provider": "none", "wsrep_on": "OFF", "read_only": "OFF", "innodb_read_only": "OFF", "group_replication_group_name": ""},
		{"wsrep_provider": "/usr/lib/galera4/libgalera_smm.so", "wsrep_on": "0", "read_only": "off"},
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

func TestTheProbeReadsWhatTellsACluster(t *testing.T) {
	t.Parallel()
	for name := range strings.SplitSeq(cluster.Variables, ", ") {
		if !strings.Contains(mysql.Probe, name) {
			t.Errorf("probe.sql does not read %s", name)
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

// A node of Percona XtraDB Cluster whose variables were not seen answers GET_LOCK so, by its documents. Here a function of
// the database does, whose name a dialler puts in.
func TestAServerThatProhibitsGetLockIsRefused(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		for function, parameters := range map[string]string{"GOT_LOCK": "name TEXT, seconds INT", "RELEASE_LOCC": "name TEXT"} {
			_, err := db.ExecContext(t.Context(), "CREATE FUNCTION "+function+" ("+parameters+`) RETURNS INT DETERMINISTIC NO SQL
				BEGIN
					SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1105,
						MESSAGE_TEXT = 'Percona-XtraDB-Cluster prohibits use of GET_LOCK with pxc_strict_mode = ENFORCING';
					RETURN 0;
				END`)
			if err != nil {
				t.Fatal(err)
			}
		}
		l := dialling(t, db.DSN, func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, network, address)
			return prohibiting{c}, err
		}, mysql.WithLogger(nil))
		_, err := l.TryAcquire(t.Context(), "a")
		mustSayWhy(t, err, "Percona XtraDB Cluster")
		_, err = l.Acquire(t.Context(), "a") // it does not wait for ever
		mustSayWhy(t, err, "Percona XtraDB Cluster")
	})
}

type prohibiting struct{ net.Conn }

func (c prohibiting) Write(b []byte) (int, error) {
	changed := bytes.ReplaceAll(b, []byte(" GET_LOCK("), []byte(" GOT_LOCK("))
	return c.Conn.Write(bytes.ReplaceAll(changed, []byte(" RELEASE_LOCK("), []byte(" RELEASE_LOCC(")))
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
