package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/schema"
)

func TestAServersTablesAreMadeOnlyByThoseWhoAsk(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db testPlace) {
		e := on(t, db.url)
		const how = "sqllock schema apply"
		call(t, e, 69, []string{"tables are missing", how, "SQLLOCK_DB"}, "run", "x", "--", "true")
		call(t, e, 69, []string{"tables are missing", how + " --db …"}, "run", "--db", db.url, "x", "--", "true")
		call(t, e, 69, []string{"--prefix other_"}, "run", "--prefix", "other_", "x", "--", "true")
		call(t, e, 69, []string{"table sqllock_lock is missing", how}, "schema", "check")
		call(t, e, 0, nil, "run", "--kind", "session", "x", "--", "true") // session locks need no tables

		call(t, e, 0, nil, "schema", "apply")
		call(t, e, 0, nil, "schema", "apply")
		call(t, e, 0, nil, "schema", "check")
		call(t, e, 0, nil, "run", "x", "--", "true")
		call(t, e, 69, []string{"other_"}, "run", "--prefix", "other_", "x", "--", "true")
		call(t, e, 0, nil, "schema", "apply", "--prefix", "other_")
		call(t, e, 0, nil, "run", "--prefix", "other_", "x", "--", "true")
	})
}

func TestMissingTablesAreAdvisedOnce(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db testPlace) {
		for _, args := range [][]string{{"run", "x", "--", "true"}, {"ls", "--kind", "lease"}, {"show", "--kind", "lease", "x"}, {"purge"}, {"release", "--force", "x"}} {
			e := on(t, db.url)
			e["PATH"] = os.Getenv("PATH")
			code, _, stderr := runHere(t, e, args...)
			if code != 69 || strings.Count(stderr, "schema apply") != 1 || strings.Contains(stderr, "schema.Apply") || strings.Count(stderr, "\n") != 1 {
				t.Errorf("%q: code %d, stderr %q", args, code, stderr)
			}
		}
	})
}

func TestTablesThatApplyDoesNotMendAreNotAdvisedToBeMade(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db testPlace) {
		for _, test := range []struct{ prefix, statement, says string }{
			{"new_", "INSERT INTO new_version (version, lowest) VALUES (1000, 1000)", "the tables take a later release of this program: upgrade it"},
			{"more_", "ALTER TABLE more_lease ADD COLUMN tenant INT NOT NULL", "sqllock schema check` says which column has to be altered"},
		} {
			call(t, on(t, db.url), 0, nil, "schema", "apply", "--prefix", test.prefix)
			_, err := db.ExecContext(t.Context(), test.statement)
			must(t, err)
			code, _, stderr := runHere(t, on(t, db.url), "run", "--prefix", test.prefix, "x", "--", "true")
			if code != exitUnavailable || !strings.Contains(stderr, test.says) || strings.Contains(stderr, "schema apply") {
				t.Errorf("%q: code %d, stderr %q", test.statement, code, stderr)
			}
		}
	})
}

func TestTablesInASchemaOfTheirOwn(t *testing.T) {
	t.Parallel()
	db := servers["PostgreSQL"](t)
	_, err := db.ExecContext(t.Context(), "CREATE SCHEMA locks")
	must(t, err)
	e := on(t, db.DSN)
	call(t, e, 69, []string{"--schema locks"}, "run", "--schema", "locks", "x", "--", "true")
	call(t, e, 0, nil, "schema", "apply", "--schema", "locks")
	call(t, e, 0, nil, "run", "--schema", "locks", "x", "--", "true")
	call(t, e, 69, []string{"is missing"}, "schema", "check")
}

func TestSQLitesTablesAreMadeByThemselves(t *testing.T) {
	t.Parallel()
	url := "sqlite:" + filepath.Join(t.TempDir(), "a b?c#d%20é.db")
	call(t, on(t, url), 69, []string{"is missing"}, "schema", "check")
	call(t, on(t, url), 0, nil, "run", "x", "--", "true")
	call(t, on(t, url), 0, nil, "schema", "check")

	e := clean(t)
	own := []string{"no database is named"}
	call(t, e, 0, own, "schema", "apply", "--prefix", "p_")
	call(t, e, 0, own, "schema", "check", "--prefix", "p_")
	if code, _, stderr := runHere(t, e, "schema", "check"); code != 69 || !strings.Contains(stderr, "is missing") {
		t.Errorf("code %d, stderr %q", code, stderr)
	}
}

func TestPrintAsksNoDatabase(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		env  env
		args []string
		want schema.Dialect
	}{
		{nil, []string{"--dialect", "postgres"}, schema.Postgres},
		{nil, []string{"--dialect", "mysql"}, schema.MySQL},
		{env{"SQLLOCK_DB": "postgres://nobody@127.0.0.1:1/x"}, []string{"--dialect", "sqlite"}, schema.SQLite},
		{env{"SQLLOCK_DB": "postgres://nobody@127.0.0.1:1/x"}, nil, schema.Postgres},
		{env{"SQLLOCK_DB": "postgres://nobody@127.0.0.1:1/x"}, []string{"--db", "mysql://nobody@127.0.0.1:1/x"}, schema.MySQL},
		{env{"XDG_STATE_HOME": "/no/such/place"}, nil, schema.SQLite},
	} {
		var want bytes.Buffer
		must(t, schema.Print(&want, test.want, schema.Tables{Prefix: "p_"}))
		code, stdout, stderr := runHere(t, test.env, append([]string{"schema", "print", "--prefix", "p_"}, test.args...)...)
		if code != 0 || stderr != "" || stdout != want.String() {
			t.Errorf("%v %v: code %d, stderr %q, or not the tables of %s", test.env, test.args, code, stderr, test.want)
		}
	}
	code, _, stderr := runHere(t, nil, "schema", "print", "--dialect", "mysql", "--db", "sqlite:x")
	if code != 64 || !strings.Contains(stderr, "leave out --dialect, or --db") {
		t.Errorf("both --dialect and --db: code %d, stderr %q", code, stderr)
	}
}
