package main

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/sqltest"
)

func TestARelativeSQLitePath(t *testing.T) {
	t.Chdir(t.TempDir())
	call(t, on(t, "sqlite:a b.db"), 0, nil, "run", "x", "--", "true")
	if _, err := os.Stat("a b.db"); err != nil {
		t.Error(err)
	}
}

// An empty variable usually means a missing secret. sqllock must not fall back to locks that nobody else sees.
func TestAnEmptyVariableNamesNoDatabase(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for _, args := range [][]string{
		{"run", "x", "--", "echo", "ran"},
		{"ls"},
		{"show", "x"},
		{"watch"},
		{"release", "--force", "x"},
		{"purge"},
		{"doctor"},
		{"bench"},
		{"schema", "apply"},
		{"schema", "check"},
		{"schema", "print"},
	} {
		e := clean(t)
		e["SQLLOCK_DB"] = ""
		code, stdout, stderr := runHere(t, e, args...)
		if code != 64 || stdout != "" || !strings.Contains(stderr, "SQLLOCK_DB is set, but empty") || !strings.Contains(stderr, urlForms) {
			t.Errorf("%q: code %d, stdout %q, stderr %q; want 64", args, code, stdout, stderr)
		}
		if left, err := os.ReadDir(e["HOME"]); err != nil || len(left) > 0 {
			t.Errorf("%q: has left %v, %v", args, left, err)
		}
	}
	e := env{"SQLLOCK_DB": "", "PATH": os.Getenv("PATH")}
	if code, _, stderr := runHere(t, e, "run", "--db", sqliteFile(t).url, "x", "--", "true"); code != 0 || stderr != "" {
		t.Errorf("with --db: code %d, stderr %q", code, stderr)
	}
}

func TestAFileThatNobodyHasNamedIsTold(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	e := clean(t)
	e["PATH"] = os.Getenv("PATH")
	file := filepath.Join(e["XDG_STATE_HOME"], "sqllock", "sqllock.db")
	run := []string{"run", "x", "--", "true"}
	for _, args := range [][]string{run, {"purge"}, {"show", "x"}, {"schema", "check"}} {
		code, _, stderr := runHere(t, e, args...)
		if code != 0 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, file) || strings.Contains(stderr, "DATABASE_URL") {
			t.Errorf("%q: code %d, stderr %q, want a line with %s", args, code, stderr, file)
		}
	}
	e["DATABASE_URL"] = "postgres://u:s3cr3t@h/d"
	if _, _, stderr := runHere(t, e, run...); !strings.Contains(stderr, "DATABASE_URL is set, but not read") || strings.Contains(stderr, "s3cr3t") {
		t.Errorf("with DATABASE_URL: %q", stderr)
	}
	_, _, stderr := runHere(t, e, append([]string{"run", "--log-format", "json"}, run[1:]...)...)
	if said := mustLog(t, stderr, file); said[0]["level"] != "WARN" || said[0]["exit_code"] != nil {
		t.Errorf("as JSON: %s", stderr)
	}
	if code, _, stderr := runHere(t, e, "run", "--db", "sqlite:"+file, "x", "--", "true"); code != 0 || stderr != "" {
		t.Errorf("of a file that is named: code %d, stderr %q", code, stderr)
	}
	if code, _, stderr := runHere(t, e, "schema", "print"); code != 0 || stderr != "" {
		t.Errorf("where no file is used: code %d, stderr %q", code, stderr)
	}
}

func TestVerboseNamesTheDatabase(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEach(t, func(t *testing.T, db testPlace) {
		e := on(t, db.url)
		e["PATH"] = os.Getenv("PATH")
		code, _, stderr := runHere(t, e, "run", "-v", "--log-format", "json", "x", "--", "true")
		if code != 0 {
			t.Errorf("exit code %d, stderr %s", code, stderr)
		}
		said := mustLog(t, stderr, "database", "lock acquired")[0]
		if db.Engine == "sqlite" {
			if said["engine"] != "SQLite" || "sqlite:"+said["file"].(string) != db.url {
				t.Errorf("it says %v of %s", said, db.url)
			}
			return
		}
		var password string
		if db.Engine == sqltest.EnginePostgres {
			u, err := url.Parse(db.url)
			must(t, err)
			password, _ = u.User.Password()
		} else {
			config, err := gomysql.ParseDSN(db.url)
			must(t, err)
			password = config.Passwd
		}
		address, _ := said["address"].(string)
		name, _ := said["database"].(string)
		if !strings.Contains(db.url, address) || !strings.HasSuffix(strings.SplitN(db.url, "?", 2)[0], "/"+name) || name == "" || strings.Contains(stderr, password) {
			t.Errorf("it says %v, in %s", said, stderr)
		}
	})
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
		"postgres://h/d?sslmode=verify-full&sslrootcert=/no/ca.pem": "cannot be read: no such file",
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
	const nobody = closedPort
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
	for _, wait := range []string{"forever", "1h"} { // waiting does not create the folder
		code, _, stderr := runHere(t, env{"SQLLOCK_DB": "sqlite:/no/such/folder/x.db"}, "run", "--wait", wait, "x", "--", "true")
		if code != 69 || strings.Count(stderr, "\n") != 1 {
			t.Errorf("a file that cannot be opened: code %d, stderr %q", code, stderr)
		}
	}
}

func TestADatabaseThatStaysAwayIsTheErrorOfAWait(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	const nobody = closedPort
	for engine, named := range map[string]string{"PostgreSQL": "postgres://u:p@" + nobody + "/d", "MySQL": "mysql://u:p@" + nobody + "/d"} {
		for _, kind := range []string{"lease", "session"} {
			t.Run(engine+", "+kind, func(t *testing.T) {
				t.Parallel()
				code, _, stderr := runHere(t, env{"SQLLOCK_DB": named}, "run", "--kind", kind, "--wait", vainly, "x", "--", "true")
				first, last, _ := strings.Cut(stderr, "\n")
				if code != 69 || !strings.HasPrefix(first, "sqllock: waiting: the database cannot be used for now: ") ||
					!strings.Contains(last, `lock "x" was not taken (waited `+vainly+`), since the database could not be used: `) ||
					strings.Count(stderr, "refused") != 2 || strings.Count(stderr, "\n") != 2 {
					t.Errorf("code %d, stderr %q", code, stderr)
				}
			})
		}
	}
}

// pgx tries TLS first, which this server does not have. Without TLS the server says that the password is wrong.
func TestAWrongPasswordIsWhatIsSaid(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	u, err := url.Parse(wrongPassword(t, servers["PostgreSQL"](t), "s3cr3t"))
	must(t, err)
	query := u.Query()
	query.Set("sslmode", "prefer")
	u.RawQuery = query.Encode()
	for _, args := range [][]string{
		{"ls"},
		{"run", "x", "--", "true"},
		{"run", "--kind", "session", "x", "--", "true"},
		{"schema", "check"},
		{"doctor"},
	} {
		code, stdout, stderr := runHere(t, env{"SQLLOCK_DB": u.String(), "PATH": os.Getenv("PATH")}, args...)
		said := strings.Join(strings.Fields(stdout+stderr), " ")
		if code != 69 || !strings.Contains(said, "password authentication failed") || strings.Contains(said, "tls error") {
			t.Errorf("%q: code %d, it said %s", args, code, said)
		}
	}
}

func TestAServerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0") // the system accepts connections, but nobody answers
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	at := listener.Addr().String()
	for engine, named := range map[string]string{"PostgreSQL": "postgres://u:p@" + at + "/d?connect_timeout=1", "MySQL": "mysql://u:p@" + at + "/d?timeout=300ms"} {
		for _, args := range [][]string{
			{"run", "--wait", "3s", "x", "--", "true"},
			{"run", "--wait", "0", "x", "--", "true"},
			{"run", "--wait", "100ms", "x", "--", "true"},
			{"run", "--kind", "session", "--wait", "3s", "x", "--", "true"},
			{"run", "--kind", "session", "--wait", "0", "x", "--", "true"},
		} {
			t.Run(engine+", "+strings.Join(args, " "), func(t *testing.T) {
				t.Parallel()
				code, _, stderr := runHere(t, env{"SQLLOCK_DB": named}, args...)
				if code != 69 || !strings.HasPrefix(stderr, "sqllock: ") {
					t.Errorf("code %d, stderr %q, want 69", code, stderr)
				}
			})
		}
	}
}

// closedPort is an address without a server. No program gets that port by chance.
const closedPort = "127.0.0.1:1"

func TestAPasswordIsNeverShown(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	const part = "s3cr3t"           // in every password
	at := func(dsn string) string { // returns the server's address
		if u, err := url.Parse(dsn); err == nil && u.Host != "" {
			return u.Host
		}
		config, err := gomysql.ParseDSN(dsn)
		must(t, err)
		return config.Addr
	}
	const nobody = closedPort
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

// A statement that one client prepares in a session of the pooler is visible to other clients there.
func TestCommandsWorkBehindATransactionPooler(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqltest.Postgres(t)
	e := on(t, locktest.StartBouncer(t, db.DSN, "transaction", "default_pool_size = 2", "server_round_robin = 1"))
	for range 2 {
		call(t, e, 0, nil, "schema", "apply")
		call(t, e, 0, nil, "schema", "check")
		if out := call(t, e, 0, nil, "run", "it", "--", "echo", "hi"); out != "hi\n" {
			t.Errorf("the command says %q", out)
		}
		holder := held(t, e, "held")
		call(t, e, exitHeld, []string{"held"}, "run", "--wait", "0", "held", "--", "echo", "no")
		if out := call(t, e, 0, nil, "ls", "--kind", "lease"); !strings.Contains(out, "held") {
			t.Errorf("ls says %q", out)
		}
		must(t, holder.stdin.Close())
		holder.rest()
		holder.exits(0)
		call(t, e, 0, nil, "purge")
		call(t, e, 0, nil, "bench", "--duration", "50ms")
	}
}
