package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/sqltest"
)

func TestEveryCommandReadsTheFile(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "locks.env")
	must(t, os.WriteFile(file, []byte("SQLLOCK_DB=sqlite:"+filepath.Join(dir, "x.db")+"\n"), 0o600))
	e := on(t, "postgres://nobody@127.0.0.1:1/x") // the flag overrides it
	call(t, e, 0, nil, "schema", "apply", "--db-file", file)
	call(t, e, 0, nil, "schema", "check", "--db-file", file)
	call(t, e, 0, nil, "run", "--db-file", file, "x", "--", "true")
	if out := call(t, e, 0, nil, "schema", "print", "--db-file", file); !strings.Contains(out, "sqllock_lock") {
		t.Errorf("it printed %q, want tables", out)
	}
	call(t, e, 64, []string{"leave out --dialect"}, "schema", "print", "--db-file", file, "--dialect", "mysql")
	call(t, e, 64, []string{"leave out one of them"}, "schema", "check", "--db-file", file, "--db", "sqlite:x")
}

func TestTheVariableMayEndWithANewline(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	file := filepath.Join(t.TempDir(), "x.db")
	call(t, on(t, "sqlite:"+file+"\n"), 0, nil, "schema", "apply")
	must(t, os.Rename(file, file+" found"))
}

func TestMissingTablesAreMadeByTheFile(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := servers["PostgreSQL"](t)
	file := filepath.Join(t.TempDir(), "url")
	must(t, os.WriteFile(file, []byte(db.DSN), 0o600))
	call(t, clean(t), 69, []string{"sqllock schema apply --db-file …"}, "run", "--db-file", file, "x", "--", "true")
}

func TestAFileThatCannotBeRead(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	large := filepath.Join(t.TempDir(), "large")
	must(t, os.WriteFile(large, make([]byte, mostOfFile+1), 0o600))
	for name, says := range map[string]string{
		"":                        "--db-file is empty",
		"/no/such/file":           "no such file",
		t.TempDir():               "is a directory",
		large:                     "more than 65536 bytes",
		"postgres://u:s3cr3t@h/d": "no such file",
		"/dev/zero":               "more than 65536 bytes",
	} {
		code, _, stderr := runHere(t, clean(t), "schema", "check", "--db-file", name)
		if code != 64 || !strings.Contains(stderr, says) || !strings.Contains(stderr, fileForms) || strings.Contains(stderr, "s3cr3t") {
			t.Errorf("%q: code %d, stderr %q, want 64 and %q", name, code, stderr, says)
		}
	}
}

func TestAPasswordThatEverybodyCanRead(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	file := filepath.Join(t.TempDir(), "locks.env")
	for _, test := range []struct {
		named string
		mode  os.FileMode
		says  bool
	}{
		{"postgres://u:s3cr3t@127.0.0.1:1/d", 0o644, true},
		{"u:s3cr3t@tcp(127.0.0.1:1)/d", 0o604, true},
		{"host=127.0.0.1 port=1 password=s3cr3t", 0o644, true},
		{"postgres://u:s3cr3t@127.0.0.1:1/d", 0o640, false},
		{"postgres://u@127.0.0.1:1/d", 0o644, false},
		{"sqlite:" + filepath.Join(t.TempDir(), "x.db"), 0o644, false},
	} {
		must(t, os.WriteFile(file, []byte("SQLLOCK_DB='"+test.named+"'"), 0o600))
		must(t, os.Chmod(file, test.mode))
		_, _, stderr := runHere(t, clean(t), "schema", "print", "--db-file", file)
		if stderr != "" != test.says || test.says && !strings.Contains(stderr, "chmod o-r") || strings.Contains(stderr, "s3cr3t") {
			t.Errorf("%s with mode %o: stderr %q", test.named, test.mode, stderr)
		}
	}
}

func TestThePasswordInTheFileIsReadAgain(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db testPlace) {
		call(t, on(t, db.url), 0, nil, "schema", "apply")
		do := func(statement string) {
			t.Helper()
			_, err := db.ExecContext(t.Context(), statement)
			must(t, err)
		}
		url, network := behind(t, db)
		database := databaseName(t, db)
		user := "r" + database[max(0, len(database)-24):]
		scheme, change := "", "ALTER USER "+user+" IDENTIFIED BY 'second'"
		if db.Engine == sqltest.EnginePostgres {
			scheme, change = "postgres://", "ALTER ROLE "+user+" PASSWORD 'second'"
			do("CREATE ROLE " + user + " LOGIN PASSWORD 'first'")
			t.Cleanup(func() { _, _ = db.Exec("DROP OWNED BY " + user + "; DROP ROLE " + user) })
			do("GRANT ALL ON ALL TABLES IN SCHEMA public TO " + user)
		} else {
			do("CREATE USER " + user + " IDENTIFIED BY 'first'")
			t.Cleanup(func() { _, _ = db.Exec("DROP USER " + user) })
			do("GRANT ALL ON " + database + ".* TO " + user)
		}
		_, place, _ := strings.Cut(url, "@")
		file := filepath.Join(t.TempDir(), "url")
		write := func(password string) { must(t, os.WriteFile(file, []byte(scheme+user+":"+password+"@"+place), 0o600)) }

		write("first")
		holder := held(t, on(t, db.url), "--ttl", "1m", "x")
		waiter := start(t, clean(t), "run", "--db-file", file, "--wait", "forever", "x", "--", "echo", "done")
		waiter.waits(db)
		do(change)
		write("second")
		network.Disconnect()
		holder.letGo()
		waiter.expect("done")
		if code := waiter.exit(); code != 0 {
			t.Errorf("exit code %d, stderr %q", code, waiter.errors())
		}
	})
}

func databaseName(t *testing.T, db testPlace) (name string) {
	t.Helper()
	query := "SELECT DATABASE()"
	if db.Engine == sqltest.EnginePostgres {
		query = "SELECT current_database()"
	}
	must(t, db.GetContext(t.Context(), &name, query))
	return name
}
