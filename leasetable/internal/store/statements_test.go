package store_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/leasetable/internal/store"
	"github.com/sqllock/sqllock/schema"
)

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
