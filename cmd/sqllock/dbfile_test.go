package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/locktest"
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
