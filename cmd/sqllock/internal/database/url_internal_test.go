package database

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	gomysql "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/console"
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
		"u:p/@:x@tcp(h:1)/d?loc=Europe/Berlin&time_zone=%27UTC%27": {User: "u", Passwd: "p/@:x", Addr: "h:1", DBName: "d", Params: map[string]string{"time_zone": "'UTC'"}},
		"u:p@/d": {User: "u", Passwd: "p", Addr: "127.0.0.1:3306", DBName: "d"},
		"mysql://h/d?loc=Europe/Berlin&time_zone=%27UTC%27": {Addr: "h:3306", DBName: "d", Params: map[string]string{"time_zone": "'UTC'"}},
	} {
		db, err := openURL(named)
		if err != nil {
			t.Errorf("%s: %v", named, err)
			continue
		}
		defer db.Close()
		got := configOf(t, db)
		if db.Dialect != schema.MySQL || got.User != want.User || got.Passwd != want.Passwd || got.Net != "tcp" ||
			got.Addr != want.Addr || got.DBName != want.DBName || len(got.Params)+len(want.Params) > 0 && !reflect.DeepEqual(got.Params, want.Params) {
			t.Errorf("%s: %+v, want %+v", named, got, &want)
		}
		if got.Timeout != ConnectTimeout {
			t.Errorf("%s: connecting takes up to %v", named, got.Timeout)
		}
		if strings.Contains(named, "Berlin") && got.Loc.String() != "Europe/Berlin" {
			t.Errorf("%s: location %v", named, got.Loc)
		}
	}
}

// A server, or what says that it is one, may answer any statement with a request for a file of this machine.
func TestAMySQLServerGetsNoFiles(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for _, named := range []string{"mysql://u:p@h/d?allowAllFiles=true", "u:p@tcp(h:1)/d?allowAllFiles=true"} {
		db, err := openURL(named)
		must(t, err)
		defer db.Close()
		if configOf(t, db).AllowAllFiles {
			t.Errorf("%s: a server can read every file", named)
		}
	}
}

// configOf reads the configuration back out of a handle, through the driver.
func configOf(t *testing.T, db *Database) *gomysql.Config {
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
		defer db.Close()
		got := postgresConfigOf(t, db)
		if got.Host != "h" || got.Port != 5433 || got.User != "u" || got.Password != "p@/" || got.Database != "d" ||
			got.RuntimeParams["application_name"] != "x" || got.ConnectTimeout != ConnectTimeout || db.Dialect != schema.Postgres {
			t.Errorf("%s: not what it says", named)
		}
	}
}

func postgresConfigOf(t *testing.T, db *Database) pgx.ConnConfig {
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
			must(t, db.Prepare(t.Context(), schema.Tables{}))
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
			db.Close()
			files, err := os.ReadDir(dir)
			must(t, err)
			if len(files) != 1 || files[0].Name() != name {
				t.Errorf("%s%s made %v", prefix, name, files)
			}
		}
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
		got, err := stateFile(&console.Console{Environ: test.environ})
		if strings.Contains(test.want, ".local") && (os.PathSeparator != '/' || strings.Contains(got, "Library")) {
			continue // the folder of another system
		}
		if got != test.want || (err != nil) != (test.want == "") {
			t.Errorf("%v: %q, %v, want %q", test.environ, got, err, test.want)
		}
	}
}

func TestTheDatabaseOfSeveralHostsHasThemAllInTheLog(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db, err := openURL("postgres://u:s3cr3t@a:5432,b:5433,a:5432/d")
	must(t, err)
	defer db.Close()
	if got := fmt.Sprint(db.Attrs()); got != "[engine=PostgreSQL address=a:5432,b:5433 database=d]" {
		t.Errorf("of several hosts it says %s", got)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
