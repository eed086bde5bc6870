package database

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/locktest"
)

func TestAFileNamesTheDatabase(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for text, want := range map[string]string{
		"postgres://h/d":                                    "postgres://h/d",
		"  postgres://h/d \r\nmore\n":                       "postgres://h/d",
		"\n# the locks\npostgres://h/d#x\nmysql://h/d":      "postgres://h/d#x",
		"host=h dbname=d password=P=1":                      "host=h dbname=d password=P=1",
		"SQLLOCK_DB=postgres://h/d?a=b":                     "postgres://h/d?a=b",
		"A=1\nexport SQLLOCK_DB='mysql://h/d'\nB=2\n":       "mysql://h/d",
		"SQLLOCK_DB=sqlite:old\nSQLLOCK_DB=\"sqlite:a b\"":  "sqlite:a b",
		"SQLLOCK_DB=\"sqlite:a'":                            "\"sqlite:a'",
		"mysql://h/first\nSQLLOCK_DB=mysql://h/second":      "mysql://h/second",
		"#SQLLOCK_DB=mysql://h/off\nSQLLOCK_DB=mysql://h/d": "mysql://h/d",
		"\ufeffSQLLOCK_DB=mysql://h/d\r\n":                  "mysql://h/d",
		"export  SQLLOCK_DB = 'mysql://h/d#x' # a comment":  "mysql://h/d#x",
		"SQLLOCK_DB=\"mysql://h/d\"\t# the locks\r\n":       "mysql://h/d",
		"SQLLOCK_DB=mysql://h/d#x # the locks":              "mysql://h/d#x",
		"SQLLOCK_DB='host=h password=a#\" #b'":              "host=h password=a#\" #b",
	} {
		if got, err := databaseIn(text); got != want || err != nil {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
	for text, says := range map[string]string{
		"":                       "is empty",
		" \n\n# nothing\n":       "is empty",
		"SQLLOCK_DB=\nA=1":       "empty SQLLOCK_DB",
		"SQLLOCK_DB=''":          "empty SQLLOCK_DB",
		"SQLLOCK_DB= # t0p":      "empty SQLLOCK_DB",
		"PASSWORD = t0p":         "sets variables, but not SQLLOCK_DB",
		"TOKEN=t0p\nPASSWORD=x":  "sets variables, but not SQLLOCK_DB",
		"export TOKEN=t0p":       "sets variables, but not SQLLOCK_DB",
		"XSQLLOCK_DB=sqlite:t0p": "sets variables, but not SQLLOCK_DB",
	} {
		got, err := databaseIn(text)
		if err == nil || got != "" || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "t0p") {
			t.Errorf("%q: %q, %v, want %q", text, got, err, says)
		}
	}
}

func TestThePasswordOfAnotherUserOrServerIsNotTaken(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for start, files := range map[string]map[string]string{
		"postgres://me:old@h/d": {
			"postgres://me:new@h/d": "new", "postgres://me:new@h/other": "new", "postgres://you:new@h/d": "old",
			"postgres://me:new@elsewhere/d": "old", "mysql://me:new@h/d": "old", "nothing": "old",
		},
		"mysql://me:old@h/d": {
			"mysql://me:new@h/d": "new", "mysql://you:new@h/d": "old", "mysql://me:new@h:3307/d": "old", "postgres://me:new@h/d": "old",
		},
	} {
		db, err := openURL(start)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for text, want := range files {
			f := &Flags{file: filepath.Join(t.TempDir(), "url")}
			if err := os.WriteFile(f.file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := f.password(db, "old"); got != want {
				t.Errorf("at the start %s, now %s: %q", start, text, got)
			}
		}
		if got := (&Flags{file: t.TempDir()}).password(db, "old"); got != "old" { // as a pipe, it is no file that can be read again
			t.Errorf("of a folder: %q", got)
		}
	}
}
