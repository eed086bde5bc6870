package store_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/leasetable/internal/store"
	"github.com/sqllock/sqllock/schema"
)

// What is left in braces is filled in for each run, in the statements for many names of MySQL and MariaDB.
func TestEachPartOfAStatementIsThere(t *testing.T) {
	t.Parallel()
	braces := regexp.MustCompile(`\{\w*\}`)
	filled := []string{"{names}", "{match}", "{rows}", "{values}", "{lease}", "{metadata}", "{keep}", "{number}"}
	for _, d := range []schema.Dialect{schema.Postgres, schema.MySQL, schema.SQLite} {
		texts, _, err := store.Placeholders(d)
		if err != nil {
			t.Fatal(err)
		}
		for st, text := range texts {
			for _, name := range braces.FindAllString(text, -1) {
				if d != schema.MySQL || !slices.Contains(filled, name) {
					t.Errorf("%s: the part %s of %s is not there", d, name, st)
				}
			}
		}
	}
}

// A comment may speak of ?1, too.
func TestEachPlaceholderOfMySQLGetsItsArgument(t *testing.T) {
	t.Parallel()
	texts, sent, err := store.Placeholders(schema.MySQL)
	if err != nil {
		t.Fatal(err)
	}
	comment := regexp.MustCompile(`(?m)^--.*$`)
	some := 0
	for st, text := range texts {
		n := strings.Count(comment.ReplaceAllString(text, ""), "?")
		if some += n; n != sent[st] || strings.Count(text, "?") != n {
			t.Errorf("%s has %d placeholders, and gets %d arguments:\n%s", st, n, sent[st], text)
		}
	}
	if some < 50 {
		t.Errorf("there are %d placeholders only", some)
	}
}
