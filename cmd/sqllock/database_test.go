package main

import (
	"context"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	gomysql "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sqllock/sqllock/internal/connector"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/schema"
)

func TestAMySQLURLBecomesTheDriversOwn(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for named, want := range map[string]gomysql.Config{
		"mysql://u:p@h/d":          {User: "u", Passwd: "p", Addr: "h:3306", DBName: "d"},
		"mariadb://u@h:3307/d":     {User: "u", Addr: "h:3307", DBName: "d"},
		"MySQL://u:p@[::1]:3307/d": {User: "u", Passwd: "p", Addr: "[::1]:3307", DBName: "d"},
		"mysql://u:p@[::1]/d":      {User: "u", Passwd: "p", Addr: "[::1]:3306", DBName: "d"},
		"mysql:///d":               {Addr: "127.0.0.1:3306", DBName: "d"},
		"mysql://u%3Ax:p%40%2F%3A%3F%23%25%20@h/d%2Fe%20f": {User: "u:x", Passwd: "p@/:?#% ", Addr: "h:3306", DBName: "d/e f"},
		"mysql://u:p@q@h/d":  {User: "u", Passwd: "p@q", Addr: "h:3306", DBName: "d"},
		"u:p/@:x@tcp(h:1)/d": {User: "u", Passwd: "p/@:x", Addr: "h:1", DBName: "d"},
		"u@tcp(h)/":          {User: "u", Addr: "h:3306"},
		"u:p@/d":             {User: "u", Passwd: "p", Addr: "127.0.0.1:3306", DBName: "d"},
		"mysql://h/d?loc=Europe/Berlin&time_zone=%27UTC%27": {Addr: "h:3306", DBName: "d", Params: map[string]string{"time_zone": "'UTC'"}},
	} {
		db, err := openURL(named)
		if err != nil {
			t.Errorf("%s: %v", named, err)
			continue
		}
		defer db.close()
		got := configOf(t, db)
		if db.dialect != schema.MySQL || got.User != want.User || got.Passwd != want.Passwd || got.Net != "tcp" ||
			got.Addr != want.Addr || got.DBName != want.DBName || len(got.Params)+len(want.Params) > 0 && !reflect.DeepEqual(got.Params, want.Params) {
			t.Errorf("%s: %+v, want %+v", named, got, &want)
		}
		if got.Timeout != connectTimeout {
			t.Errorf("%s: connecting takes up to %v", named, got.Timeout)
		}
		if strings.Contains(named, "Berlin") && got.Loc.String() != "Europe/Berlin" {
			t.Errorf("%s: location %v", named, got.Loc)
		}
	}
}

// configOf reads the configuration back out of a handle, through the driver.
func configOf(t *testing.T, db *database) *gomysql.Config {
	t.Helper()
	c, err := connector.Of(db.DB.DB)
	must(t, err)
	field := reflect.ValueOf(c.(timely).Connector).Elem().FieldByName("cfg")
	return reflect.NewAt(field.Type(), field.Addr().UnsafePointer()).Elem().Interface().(*gomysql.Config)
}

func TestPostgresURLs(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for _, named := range []string{
		"postgres://u:p%40%2F@h:5433/d?application_name=x", "postgresql://u:p%40%2F@h:5433/d?application_name=x",
		"Postgres://u:p%40%2F@h:5433/d?application_name=x", "host=h port=5433 user=u password=p@/ dbname=d application_name=x",
		" user = u host=h password='p@/' port=5433 dbname=d application_name=x",
	} {
		db, err := openURL(named)
		if err != nil {
			t.Errorf("%s: %v", named, err)
			continue
		}
		defer db.close()
		got := postgresConfigOf(t, db)
		if got.Host != "h" || got.Port != 5433 || got.User != "u" || got.Password != "p@/" || got.Database != "d" ||
			got.RuntimeParams["application_name"] != "x" || got.ConnectTimeout != connectTimeout || db.dialect != schema.Postgres {
			t.Errorf("%s: not what it says", named)
		}
	}
}

func postgresConfigOf(t *testing.T, db *database) pgx.ConnConfig {
	t.Helper()
	c, err := connector.Of(db.DB.DB)
	must(t, err)
	if _, ok := c.Driver().(*stdlib.Driver); !ok {
		t.Fatalf("the driver is %T", c.Driver())
	}
	copied := reflect.New(reflect.TypeOf(c)).Elem()
	copied.Set(reflect.ValueOf(c))
	field := copied.FieldByName("ConnConfig")
	return field.Interface().(pgx.ConnConfig)
}

func TestSQLitePathsAreTakenAsTheyStand(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for _, name := range []string{"plain.db", "a b.db", "a?b=c&d.db", "a#b.db", "a%20b.db", "a%.db", "é🔒.db", "a'b\"c.db", "file:x.db", "a:b.db"} {
		for _, prefix := range []string{"sqlite:", "SQLite:", "sqlite://"} {
			dir := t.TempDir()
			db, err := openURL(prefix + filepath.Join(dir, name))
			must(t, err)
			must(t, db.prepare(t.Context(), schema.Tables{}))
			var mode string
			must(t, db.Get(&mode, "PRAGMA journal_mode"))
			if mode != "wal" {
				t.Errorf("%s%s: journal mode %s", prefix, name, mode)
			}
			var timeout int
			must(t, db.Get(&timeout, "PRAGMA busy_timeout"))
			if timeout != 5000 {
				t.Errorf("%s%s: busy timeout %d", prefix, name, timeout)
			}
			db.close()
			files, err := os.ReadDir(dir)
			must(t, err)
			if len(files) != 1 || files[0].Name() != name {
				t.Errorf("%s%s made %v", prefix, name, files)
			}
		}
	}
}

func TestARelativeSQLitePath(t *testing.T) {
	t.Chdir(t.TempDir())
	call(t, on(t, "sqlite:a b.db"), 0, nil, "run", "x", "--", "true")
	if _, err := os.Stat("a b.db"); err != nil {
		t.Error(err)
	}
}

func TestTheStateFile(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for _, test := range []struct {
		environ []string
		want    string
	}{
		{[]string{"XDG_STATE_HOME=/state", "HOME=/home/u"}, "/state/sqllock/sqllock.db"},
		{[]string{"XDG_STATE_HOME=", "XDG_STATE_HOME=/last"}, "/last/sqllock/sqllock.db"},
		{[]string{"XDG_STATE_HOME=relative", "HOME=/home/u"}, "/home/u/.local/state/sqllock/sqllock.db"},
		{[]string{"HOME=/home/u"}, "/home/u/.local/state/sqllock/sqllock.db"},
		{nil, ""},
	} {
		got, err := (&Main{Environ: test.environ}).stateFile()
		if strings.Contains(test.want, ".local") && (os.PathSeparator != '/' || strings.Contains(got, "Library")) {
			continue // another system's place
		}
		if got != test.want || (err != nil) != (test.want == "") {
			t.Errorf("%v: %q, %v, want %q", test.environ, got, err, test.want)
		}
	}
}

func TestBadDatabasesListTheForms(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for _, named := range []string{
		"locks", "locks.db", "/var/lib/locks.db", "file:locks.db", "sqlite", "oracle://h/d", "redis://h", "http://h/", "://", " ", "tcp", "user@host",
	} {
		code, _, stderr := runHere(t, env{"SQLLOCK_DB": named}, "schema", "check")
		if code == 64 && strings.Contains(stderr, urlForms) || named == "/var/lib/locks.db" && code == 64 {
			continue
		}
		t.Errorf("%q: code %d, stderr %q, want 64 and the forms", named, code, stderr)
	}
	for named, says := range map[string]string{
		"sqlite:":                        "needs a path",
		"sqlite://":                      "third slash",
		"sqlite://x.db":                  "third slash",
		"sqlite::memory:":                "locks nobody out",
		"mysql://h:port/d":               "cannot be parsed",
		"mysql://u:p:3306/d":             "cannot be parsed",
		"mysql://h/d?user=u&password=p":  "before the @",
		"u@tcp(h)/d?Passwd=p":            "before the @",
		"postgres://h:x/d":               "cannot be parsed",
		"mysql://h/d?tls=no-such-config": "cannot be parsed",
	} {
		code, _, stderr := runHere(t, env{"SQLLOCK_DB": named}, "schema", "check")
		if code != 64 || !strings.Contains(stderr, says) {
			t.Errorf("%q: code %d, stderr %q, want 64 and %q", named, code, stderr, says)
		}
	}
}

func TestADatabaseThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	nobody := closedPort(t)
	for named, says := range map[string]string{
		"postgres://u:p@" + nobody + "/d": "refused",
		"mysql://u:p@" + nobody + "/d":    "refused",
		"sqlite:/no/such/folder/x.db":     "unable to open database file",
	} {
		for _, args := range [][]string{
			{"schema", "check"},
			{"schema", "apply"},
			{"run", "--wait", "0", "x", "--", "true"},
		} {
			code, _, stderr := runHere(t, env{"SQLLOCK_DB": named}, args...)
			if code != 69 || !strings.Contains(stderr, says) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("%s: %v: code %d, stderr %q, want 69 and %q", named, args, code, stderr, says)
			}
		}
	}
	for _, wait := range []string{"forever", "1h"} { // no wait makes a folder
		code, _, stderr := runHere(t, env{"SQLLOCK_DB": "sqlite:/no/such/folder/x.db"}, "run", "--wait", wait, "x", "--", "true")
		if code != 69 || strings.Count(stderr, "\n") != 1 {
			t.Errorf("a file that cannot be opened: code %d, stderr %q", code, stderr)
		}
	}
}

func TestADatabaseThatStaysAwayIsTheErrorOfAWait(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	nobody := closedPort(t)
	for _, named := range []string{"postgres://u:p@" + nobody + "/d", "mysql://u:p@" + nobody + "/d"} {
		for _, kind := range []string{"lease", "session"} {
			code, _, stderr := runHere(t, env{"SQLLOCK_DB": named}, "run", "--kind", kind, "--wait", "300ms", "x", "--", "true")
			first, last, _ := strings.Cut(stderr, "\n")
			if code != 69 || !strings.HasPrefix(first, "sqllock: waiting: the database cannot be used for now: ") ||
				!strings.Contains(last, `lock "x" was not taken (waited 300ms), since the database could not be used: `) ||
				strings.Count(stderr, "refused") != 2 || strings.Count(stderr, "\n") != 2 {
				t.Errorf("%s, %s: code %d, stderr %q", named, kind, code, stderr)
			}
		}
	}
}

func TestAServerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0") // the system accepts, and nobody speaks
	must(t, err)
	defer func() { _ = listener.Close() }()
	at := listener.Addr().String()
	for _, named := range []string{"postgres://u:p@" + at + "/d?connect_timeout=1", "mysql://u:p@" + at + "/d?timeout=300ms"} {
		for _, args := range [][]string{
			{"run", "--wait", "3s", "x", "--", "true"},
			{"run", "--wait", "0", "x", "--", "true"},
			{"run", "--wait", "100ms", "x", "--", "true"},
			{"run", "--kind", "session", "--wait", "3s", "x", "--", "true"},
			{"run", "--kind", "session", "--wait", "0", "x", "--", "true"},
		} {
			code, _, stderr := runHere(t, env{"SQLLOCK_DB": named}, args...)
			if code != 69 || !strings.HasPrefix(stderr, "sqllock: ") {
				t.Errorf("%s: %v: code %d, stderr %q, want 69", named, args, code, stderr)
			}
		}
	}
}

// closedPort is the address of a server that is not there.
func closedPort(t *testing.T) string {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

func TestAPasswordIsNeverShown(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	const part = "s3cr3t"           // of every password
	at := func(dsn string) string { // the server's address
		if u, err := url.Parse(dsn); err == nil && u.Host != "" {
			return u.Host
		}
		config, err := gomysql.ParseDSN(dsn)
		must(t, err)
		return config.Addr
	}
	nobody := closedPort(t)
	pgAt, myAt := at(servers["PostgreSQL"](t).DSN), at(servers["MariaDB"](t).DSN)

	var all []string
	for _, password := range []string{part, part + "/x?x#x@x", "12?" + part, part + "#x", part + "%x: x&x=y"} {
		for _, form := range []string{password, url.QueryEscape(password), url.PathEscape(password)} {
			for _, host := range []string{pgAt, nobody} {
				all = append(all, "postgres://nobody:"+form+"@"+host+"/d", "postgres://nobody:"+form+"@"+host, "postgres://:"+form+"@"+host+"/d?sslmode=bogus")
			}
			for _, host := range []string{myAt, nobody} {
				all = append(all, "mysql://nobody:"+form+"@"+host+"/d", "mysql://nobody:"+form+"@"+host+"/d?tls=bogus",
					"nobody:"+form+"@tcp("+host+")/d", "nobody:"+form+"@"+host+"/d", "nobody:"+form+"@tcp("+host+"/d", "nobody:"+form+"@tcp("+host+")")
			}
			all = append(all, "oracle://u:"+form+"@h/d", "u:"+form+"@h", form, "host=127.0.0.1 port=1 user=u password="+form,
				"host=127.0.0.1 port=x password="+form, "host=127.0.0.1 port=1 password='"+form, "password="+form+" host=127.0.0.1 port=1 sslmode=x")
		}
	}
	plain, dotenv := filepath.Join(t.TempDir(), "plain"), filepath.Join(t.TempDir(), "dotenv")
	for _, named := range all {
		must(t, os.WriteFile(plain, []byte(named), 0o600))
		must(t, os.WriteFile(dotenv, []byte("PASSWORD="+named+"\nSQLLOCK_DB="+named), 0o600))
		for _, args := range [][]string{
			{"run", "--wait", "20ms", "x", "--", "true"},
			{"run", "--wait", "0", "--db-file", plain, "x", "--", "true"},
			{"run", "--wait", "0", "--db-file", dotenv, "x", "--", "true"},
			{"run", "--wait", "0", "--db-file", named, "x", "--", "true"},
			{"schema", "check", "--db-file" + named},
			{"run", "--kind", "session", "--wait", "0", "x", "--", "true"},
			{"run", "--wait", "20ms", "-v", "--log-format", "json", "x", "--", "true"},
			{"schema", "check", "--db=" + named},
			{"doctor"},
			{"schema", "check", named},
			{named},
			{"schema", "check", "--db" + named},
		} {
			e := env{"SQLLOCK_DB": named, "XDG_STATE_HOME": t.TempDir()}
			code, stdout, stderr := runHere(t, e, args...)
			if code == 0 || strings.Contains(stdout+stderr, part) {
				t.Errorf("%s: %q: code %d, stdout %q, stderr %q", named, args, code, stdout, stderr)
			}
		}
	}
}
