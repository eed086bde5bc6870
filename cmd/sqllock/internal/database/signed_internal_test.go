package database

import (
	"strings"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/schema"
)

func TestASessionSignsWithTheNameOfItsLock(t *testing.T) {
	t.Parallel()
	const owner = "sqllock@web-7d9f8b6c5d-abcde.example.com:4711"
	for _, test := range []struct {
		dialect           schema.Dialect
		owner, name, want string
	}{
		{schema.Postgres, "me", "nightly", "me (nightly)"},
		{schema.Postgres, "me", "job:a,b %41", "me (job:a,b %41)"},
		{schema.MySQL, "me", "job:a,b %", "me (job%3Aa%2Cb %25)"},
		{schema.Postgres, "me", "caf\u00e9 100%", "me (caf%C3%A9 100%25)"},
		{schema.MySQL, "me", "\x00\xff", "me (%00%FF)"},
		{schema.Postgres, owner, "nightly-report", "sqllock@web-7d9f8b6c5d-abcde.ex~m:4711 (nightly-report)"},
		{schema.MySQL, owner, "nightly-report", owner + " (nightly-report)"},
		{schema.Postgres, owner, strings.Repeat("n", 36), "sqllock@w~m:4711 (" + strings.Repeat("n", 36) + ")"},
		{schema.Postgres, owner, strings.Repeat("n", 37), owner},
		{schema.Postgres, "me", strings.Repeat("n", 50), "me (" + strings.Repeat("n", 50) + ")"},
		{schema.MySQL, "me", strings.Repeat("n", 198), "me"},
	} {
		db := &Database{Dialect: test.dialect}
		got := db.Signed(test.owner, test.name)
		if got != test.want {
			t.Errorf("%s, %s, %q: %q, want %q", test.dialect, test.owner, test.name, got, test.want)
		}
		if most := map[schema.Dialect]int{schema.Postgres: 55, schema.MySQL: 200}[test.dialect]; got != test.owner && len(got) > most {
			t.Errorf("%q: %d bytes", got, len(got))
		}
		if back := Unsigned(test.name, sqllock.Holder{Owner: got}).Owner; !strings.HasPrefix(got, back) || strings.HasSuffix(back, ")") {
			t.Errorf("the owner in %q is %q", got, back)
		}
		signed := strings.TrimSuffix(got[strings.LastIndex(got, " (")+2:], ")")
		hash := func(name string) string { return "hash of " + name }
		if name, found := nameOf(signed, hash(test.name), hash); got != test.owner && (!found || name != test.name) {
			t.Errorf("the name in %q is %q", got, name)
		}
	}
	if name, found := nameOf("other", "hash", strings.ToUpper); found {
		t.Errorf("of a lock of another name it says %q", name)
	}
}
