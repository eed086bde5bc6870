package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/doctor"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/internal/oddserver"
	"github.com/sqllock/sqllock/sqltest"
)

const (
	ok   = doctor.OK
	warn = doctor.Warn
	bad  = doctor.Fail
	none = doctor.None
)

// levels maps the ID of a finding to its level.
type levels map[string]doctor.Level

// diagnosis is the expected output of sqllock doctor.
type diagnosis struct {
	code                        int
	lease, session, transaction doctor.Level
	unwell                      levels   // the findings that are not ok
	absent                      []string // findings that must be absent
	says                        []string
}

// mustFind runs the doctor on a database and compares its output.
func mustFind(t *testing.T, db string, want diagnosis) {
	t.Helper()
	code, stdout, stderr := runHere(t, on(t, db), "doctor", "--json")
	var r doctor.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || stderr != "" {
		t.Errorf("exit code %d; stderr %q, %v", code, stderr, err)
	}
	verdicts := levels{"lease": want.lease, "session": want.session, "transaction": want.transaction}
	found := make(levels)
	old := strings.Contains(stdout, "PostgreSQL 12.") || strings.Contains(stdout, "PostgreSQL 13.")
	for _, f := range r.Findings {
		found[f.ID] = f.Level
		expected, listed := want.unwell[f.ID]
		if !listed {
			expected = ok
			// The connections are those of all tests on this server. An old server has no limit of idle sessions. A Docker daemon
			// may be far away.
			if (f.ID == "connections" || f.ID == "encryption") && f.Level == warn || f.ID == "idle" && old {
				expected, want.code = warn, cmp.Or(want.code, exitMind)
			}
		}
		if f.Level != expected {
			t.Errorf("%s is %s, want %s: %s", f.ID, f.Level, expected, f.Text)
		}
		if (f.Level == ok) != (f.Advice == "") || f.Text == "" {
			t.Errorf("%s is %s, and says %q and advises %q", f.ID, f.Level, f.Text, f.Advice)
		}
	}
	if code != want.code {
		t.Errorf("exit code %d, want %d", code, want.code)
	}
	for id := range want.unwell {
		if found[id] == "" {
			t.Errorf("nothing is said of %s", id)
		}
	}
	for _, id := range want.absent {
		if found[id] != "" {
			t.Errorf("something is said of %s", id)
		}
	}
	if old && want.session == ok {
		verdicts["session"] = warn
	}
	for _, v := range r.Verdicts {
		if v.Level != verdicts[v.ID] || v.Text == "" {
			t.Errorf("the verdict on %s is %s, want %s: %s", v.ID, v.Level, verdicts[v.ID], v.Text)
		}
		delete(verdicts, v.ID)
	}
	for id := range verdicts {
		t.Errorf("there is no verdict on %s", id)
	}
	for _, text := range want.says {
		if !strings.Contains(stdout, text) {
			t.Errorf("it does not say %q", text)
		}
	}
	if t.Failed() {
		t.Log(stdout)
	}
}

func TestTheDoctorFindsPlainDatabasesWell(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db testPlace) {
		well := wellAt(db.Engine)
		if db.Engine == sqltest.EngineMySQL || db.Engine == sqltest.EngineMariaDB {
			well.says = append(well.says, "transactions are REPEATABLE-READ, ")
		}
		mustFind(t, db.url, well)
	})
}

// wellAt returns the diagnosis of a plain database with tables.
func wellAt(engine sqltest.Engine) diagnosis {
	return map[sqltest.Engine]diagnosis{
		sqltest.EnginePostgres: {lease: ok, session: ok, transaction: ok, says: []string{"PostgreSQL"}},
		sqltest.EngineMySQL:    {lease: ok, session: ok, transaction: none, says: []string{"MySQL"}},
		sqltest.EngineMariaDB: {
			code: 78, lease: ok, session: ok, transaction: none,
			unwell: levels{"holders": warn}, says: []string{"MariaDB", "performance_schema"},
		},
		sqltest.EngineSQLite: {lease: ok, session: none, transaction: none, says: []string{"SQLite", "wal"}},
	}[engine]
}

func TestTheDoctorMissesTheTables(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db testPlace) {
		want := diagnosis{
			code: 69, lease: bad, session: ok, transaction: none,
			unwell: levels{"tables": bad}, absent: []string{"write"}, says: []string{"sqllock schema apply"},
		}
		switch db.Engine {
		case sqltest.EnginePostgres:
			want.transaction = ok
		case sqltest.EngineMariaDB:
			want.unwell["holders"] = warn
		}
		mustFind(t, db.url, want)
	})
}

func TestTheDoctorFindsFilesThatAllUsersCanWrite(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	folder := t.TempDir()
	file := filepath.Join(folder, "locks.db")
	call(t, on(t, "sqlite:"+file), 0, nil, "schema", "apply")
	well := wellAt(sqltest.EngineSQLite)
	odd := well
	odd.code, odd.lease, odd.unwell = exitMind, warn, levels{"file": warn}
	for _, test := range []struct {
		file, folder os.FileMode
		want         diagnosis
	}{
		{0o660, 0o770, well},
		{0o600, 0o777 | os.ModeSticky, well},
		{0o666, 0o700, well},
		{0o666, 0o755, odd},
		{0o600, 0o777, odd},
	} {
		must(t, os.Chmod(file, test.file))
		must(t, os.Chmod(folder, test.folder))
		mustFind(t, "sqlite:"+file, test.want)
	}
}

func TestTheDoctorFindsDeadVersions(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	call(t, on(t, db.DSN), 0, nil, "schema", "apply")
	for _, statement := range []string{
		"ALTER TABLE sqllock_lock SET (autovacuum_enabled = off)",
		"INSERT INTO sqllock_lock (name, token, acquired_at) VALUES ('x', 1, now())",
		"DO 'BEGIN FOR i IN 1..10100 LOOP UPDATE sqllock_lock SET token = token + 1; END LOOP; END'",
	} {
		_, err := db.ExecContext(t.Context(), statement)
		must(t, err)
	}
	locktest.Eventually(t, "the server counts the dead versions", func() bool { // some time after the commit
		var dead int
		must(t, db.GetContext(t.Context(), &dead, "SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'sqllock_lock'"))
		return dead > 10_001
	})
	mustFind(t, db.DSN, diagnosis{
		code: exitMind, lease: warn, session: ok, transaction: ok,
		unwell: levels{"vacuum": warn}, says: []string{"dead versions of rows"},
	})
}

func TestTheDoctorRecognisesAStandby(t *testing.T) {
	t.Parallel()
	server := sqltest.Start(t, sqltest.EnginePostgres)
	db := server.Database(t)
	call(t, on(t, db.DSN), 0, nil, "schema", "apply")
	_, err := db.ExecContext(t.Context(), "ALTER SYSTEM SET synchronous_standby_names = 'another'") // of the primary; the standby copies it
	must(t, err)
	oddserver.MakeStandby(t, server, db)
	mustFind(t, db.DSN, diagnosis{
		code: 69, lease: bad, session: bad, transaction: bad, absent: []string{"replication"},
		unwell: levels{"role": bad, "write": bad}, says: []string{"standby", "connect to the primary"},
	})
	// Otherwise no database can be dropped.
	for _, statement := range []string{"ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()"} {
		_, err := db.ExecContext(t.Context(), statement)
		must(t, err)
	}
}

func TestTheDoctorAdvisesOnSeveralHosts(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqltest.Postgres(t)
	call(t, on(t, db.DSN), 0, nil, "schema", "apply")
	u, err := url.Parse(db.DSN)
	must(t, err)
	query := u.RawQuery
	u.Host = closedPort + "," + u.Host
	for _, test := range []struct{ query, advice string }{ // each host has half of the time to connect
		{"", "add target_session_attrs=read-write and connect_timeout=2 to the URL"},
		{"&target_session_attrs=primary", "add connect_timeout=2 to the URL"},
	} {
		u.RawQuery = query + test.query
		mustFind(t, u.String(), diagnosis{
			code: 78, lease: ok, session: ok, transaction: ok, unwell: levels{"hosts": warn}, says: []string{test.advice},
		})
	}
	mustFind(t, db.DSN, diagnosis{lease: ok, session: ok, transaction: ok, absent: []string{"hosts"}})
}

func TestTheDoctorRecognisesWhatAPoolerPools(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	call(t, on(t, db.DSN), 0, nil, "schema", "apply")
	for _, test := range []struct {
		mode string
		want diagnosis
	}{
		{"session", diagnosis{lease: ok, session: warn, transaction: ok, unwell: levels{"pooler": warn}}},
		{"transaction", diagnosis{lease: ok, session: bad, transaction: ok, unwell: levels{"pooler": warn}}},
		// The check of the tables needs a transaction, which statement pooling does not have.
		{"statement", diagnosis{lease: warn, session: bad, transaction: bad, unwell: levels{"pooler": warn, "tables": warn}}},
	} {
		t.Run(test.mode, func(t *testing.T) {
			t.Parallel()
			test.want.code = 78
			test.want.says = []string{"pools " + test.mode + "s"}
			mustFind(t, locktest.StartBouncer(t, db.DSN, test.mode), test.want)
		})
	}
}

func TestTheDoctorRecognisesPgpool(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqltest.Postgres(t)
	call(t, on(t, db.DSN), 0, nil, "schema", "apply")
	undone := diagnosis{code: 69, lease: bad, session: bad, transaction: bad, unwell: levels{"pooler": bad, "write": bad}}
	apart := diagnosis{code: 69, lease: bad, session: bad, transaction: bad, unwell: levels{"pooler": bad}}
	for mode, want := range map[string]diagnosis{
		"raw":                   undone,
		"slony":                 undone,
		"native_replication":    apart,
		"snapshot_isolation":    apart,
		"streaming_replication": {code: 78, lease: ok, session: warn, transaction: ok, unwell: levels{"pooler": warn}},
		"logical_replication":   {code: 78, lease: ok, session: warn, transaction: ok, unwell: levels{"pooler": warn}},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			want.says = []string{"pgpool-II", mode}
			mustFind(t, locktest.StartPgpool(t, db.DSN, mode), want)
		})
	}
}

func TestTheDoctorRecognisesGalera(t *testing.T) { //nolint:paralleltest // StartGalera may set the environment
	server, _ := oddserver.StartGalera(t, "")
	db := server.Database(t)
	call(t, on(t, db.DSN), 0, nil, "schema", "apply")
	mustFind(t, db.DSN, diagnosis{
		code: 78, lease: warn, session: bad, transaction: none,
		unwell: levels{"cluster": warn}, absent: []string{"holders"}, says: []string{"a Galera node"},
	})
}

func TestTheDoctorRecognisesAServerThatIsReadOnlyOrAReplica(t *testing.T) {
	t.Parallel()
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		db := sqltest.Postgres(t)
		call(t, on(t, db.DSN), 0, nil, "schema", "apply")
		alter(t, db, "default_transaction_read_only", "on")
		mustFind(t, db.DSN, diagnosis{
			code: 69, lease: bad, session: ok, transaction: ok,
			unwell: levels{"role": bad, "write": bad}, says: []string{"default_transaction_read_only"},
		})
	})
	t.Run("MariaDB", func(t *testing.T) {
		t.Parallel()
		db := sqltest.Start(t, sqltest.EngineMariaDB, sqltest.Setting("read-only", "ON")).Database(t)
		call(t, on(t, db.DSN), 0, nil, "schema", "apply") // root may write all the same
		mustFind(t, db.DSN, diagnosis{
			code: 69, lease: bad, session: bad, transaction: none,
			unwell: levels{"role": bad}, absent: []string{"holders"}, says: []string{"SET GLOBAL read_only = OFF"},
		})
		for _, statement := range []string{"SET GLOBAL read_only = OFF", "CHANGE MASTER TO MASTER_HOST = '127.0.0.1'"} {
			_, err := db.ExecContext(t.Context(), statement)
			must(t, err)
		}
		mustFind(t, db.DSN, diagnosis{
			code: 78, lease: warn, session: warn, transaction: none,
			unwell: levels{"role": warn, "holders": warn}, says: []string{"a replica, although it can be written to"},
		})
	})
}

func TestTheDoctorRecognisesAnInnoDBThatIsReadOnly(t *testing.T) {
	t.Parallel()
	db := sqltest.Start(t, sqltest.EngineMariaDB, sqltest.Setting("innodb-read-only", "ON")).Database(t)
	mustFind(t, db.DSN, diagnosis{
		code: 69, lease: bad, session: bad, transaction: none,
		unwell: levels{"role": bad, "tables": bad}, absent: []string{"holders"}, says: []string{"innodb_read_only"},
	})
}

// Some connections are only for superusers and, from PostgreSQL 16 on, some for roles that an administrator chooses.
func TestTheDoctorCountsNoReservedConnections(t *testing.T) {
	t.Parallel()
	var has bool
	must(t, sqltest.Postgres(t).GetContext(t.Context(), &has, "SELECT current_setting('reserved_connections', true) IS NOT NULL"))
	if !has {
		t.Skip("this server has no reserved_connections")
	}
	server := sqltest.Start(t, sqltest.EnginePostgres, sqltest.Setting("max_connections", "50"),
		sqltest.Setting("superuser_reserved_connections", "3"), sqltest.Setting("reserved_connections", "20"))
	db := server.Database(t)
	call(t, on(t, db.DSN), 0, nil, "schema", "apply")
	want := wellAt(db.Engine)
	want.says = []string{"of 27 connections are in use"}
	mustFind(t, db.DSN, want)
}

// alter changes a setting of a PostgreSQL database for new connections.
func alter(t *testing.T, db *sqltest.Database, setting, value string) {
	t.Helper()
	u, err := url.Parse(db.DSN)
	must(t, err)
	_, err = db.ExecContext(t.Context(), fmt.Sprintf("ALTER DATABASE %s SET %s = '%s'", strings.TrimPrefix(u.Path, "/"), setting, value))
	must(t, err)
}

func TestTheDoctorMindsOddDefaults(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	call(t, on(t, db.DSN), 0, nil, "schema", "apply")
	alter(t, db, "default_transaction_isolation", "serializable")
	alter(t, db, "synchronous_commit", "off")
	alter(t, db, "timezone", "America/Bogota")
	mustFind(t, db.DSN, diagnosis{
		code: 78, lease: warn, session: ok, transaction: warn,
		unwell: levels{"defaults": warn, "replication": warn}, says: []string{"serializable", "a crash forgets"},
	})
}

// A check that the user may not do is reported in its own line, and does not affect the others.
func TestTheDoctorOfAUserWhoMayDoLittle(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db testPlace) {
		call(t, on(t, db.url), 0, nil, "schema", "apply")
		do := func(statement string) {
			t.Helper()
			_, err := db.ExecContext(t.Context(), statement)
			must(t, err)
		}
		want := diagnosis{code: 69, lease: bad, session: ok, transaction: none, unwell: levels{"write": bad}, says: []string{"denied", "need not"}}
		if db.Engine == sqltest.EnginePostgres {
			u, err := url.Parse(db.DSN)
			must(t, err)
			reader := "reader_of_" + strings.TrimPrefix(u.Path, "/")
			do("CREATE ROLE " + reader + " LOGIN PASSWORD 'secret'")
			t.Cleanup(func() {
				for _, statement := range []string{"DROP OWNED BY ", "DROP ROLE "} {
					if _, err := db.Exec(statement + reader); err != nil {
						t.Error(err)
					}
				}
			})
			do("GRANT SELECT ON ALL TABLES IN SCHEMA public TO " + reader)
			do("REVOKE CREATE ON SCHEMA public FROM PUBLIC") // PostgreSQL 15 does this by default
			do("REVOKE SELECT ON pg_stat_replication FROM PUBLIC")
			u.User = url.UserPassword(reader, "secret")
			want.transaction, want.unwell["replication"] = ok, warn
			mustFind(t, u.String(), want)
			return
		}
		config, err := gomysql.ParseDSN(db.DSN)
		must(t, err)
		reader := "r" + config.DBName[max(0, len(config.DBName)-30):]
		do("CREATE USER " + reader + "@'%' IDENTIFIED BY 'secret'")
		t.Cleanup(func() {
			if _, err := db.Exec("DROP USER " + reader); err != nil {
				t.Error(err)
			}
		})
		do("GRANT SELECT ON " + config.DBName + ".* TO " + reader)
		config.User, config.Passwd = reader, "secret"
		want.unwell["holders"] = warn
		mustFind(t, config.FormatDSN(), want)
	})
}

func TestTheDoctorSaysWhyThereIsNoConnection(t *testing.T) {
	t.Parallel()
	const password = "s3cr3t"
	var config net.ListenConfig
	silent, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0") // the system accepts connections, but nobody answers
	must(t, err)
	defer func() { _ = silent.Close() }()
	for _, test := range []struct{ db, advice string }{
		{wrongPassword(t, sqltest.Postgres(t), password), "check the user and the password"},
		{wrongPassword(t, sqltest.MySQL(t), password), "check the user and the password"},
		{"postgres://u:" + password + "@" + closedPort + "/d", "check the host and the port"},
		{"mysql://u:" + password + "@" + closedPort + "/d", "check the host and the port"},
		{"postgres://u:" + password + "@" + silent.Addr().String() + "/d?connect_timeout=1", "check the host and the port"},
		{"sqlite:" + t.TempDir(), "check the path"},
	} {
		for _, args := range [][]string{{"doctor"}, {"doctor", "--json"}} {
			if _, stdout, stderr := runHere(t, on(t, test.db), args...); strings.Contains(stdout+stderr, password) {
				t.Errorf("%v shows the password", args)
			}
		}
		mustFind(t, test.db, diagnosis{
			code: 69, lease: bad, session: bad, transaction: bad,
			unwell: levels{"connect": bad}, absent: []string{"server"}, says: []string{test.advice},
		})
	}
}

func wrongPassword(t *testing.T, db *sqltest.Database, password string) string {
	t.Helper()
	if db.Engine == sqltest.EnginePostgres {
		u, err := url.Parse(db.DSN)
		must(t, err)
		u.User = url.UserPassword(u.User.Username(), password)
		return u.String()
	}
	config, err := gomysql.ParseDSN(db.DSN)
	must(t, err)
	config.Passwd = password
	return config.FormatDSN()
}

func TestTheDoctorsReportIsReadable(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db testPlace) {
		code, stdout, stderr := runHere(t, on(t, db.url), "doctor")
		if code != 69 || stderr != "" {
			t.Errorf("exit code %d, stderr %q", code, stderr)
		}
		for line := range strings.Lines(stdout) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
				t.Errorf("%d characters: %s", n, line)
			}
		}
		session := "✓ session  "
		if locktest.OldPostgres(t, db.DB.DB) {
			session = "! session  "
		}
		for _, text := range []string{"✓ server  ", "✗ tables  ", "\n               → run `sqllock schema apply", "\nWhich kinds of lock are safe here:\n✗ lease  ", session} {
			if !strings.Contains(stdout, text) {
				t.Errorf("it does not say %q:\n%s", text, stdout)
			}
		}
	})
}
