package locktest

import (
	"strings"
	"testing"

	"github.com/sqllock/sqllock"
)

// nameTests are about what names may be.
type nameTests struct{ suite }

func (s nameTests) tests() []test {
	return []test{
		{"every name is another lock whatever its bytes", s.hostileNames},
		{"names that are too long or empty are ErrName", s.invalidNames},
	}
}

// hostileNames are names that some database, character set or driver confuses, truncates or refuses.
func (s nameTests) hostileNames(t *testing.T) {
	long := strings.Repeat("x", 1023)
	names := []string{
		"a", "A", "a ", " a", "a\n", "a\t", "\ufeffa",
		"a\x00b", "a\x00", "\x00a", "\x00", "\x00\x00",
		"\u00e9", "e\u0301", "e", "E", "\u00c9", // é composed and decomposed
		"ß", "ss", "ı", "i", "I", "İ",
		"🔒", "🔓", "\xf0\x9f\x94", "\xff", "\xff\xfe", "\xc3\x28", "\xed\xa0\x80",
		"'", "''", `"`, "`", `\`, `\\`, `\'`, "%", "%%", "%s", "_", "?", "$1", ":name", "@name", ";--", "/*",
		"NULL", "0", "00", "0x61", "1", "+1", "1.0", "true",
		long + "a", long + "A", long + " ", long, strings.Repeat("\u00e9", 512), strings.Repeat("\x00", 1024),
		strings.Repeat("\xff", 1024),
	}
	a, b := s.twoLockers(t)
	locks := make([]sqllock.Lock, 0, len(names))
	for _, name := range names {
		// That it is free proves that it differs from all names before it.
		lock := MustTry(t, a, name)
		if lock.Name() != name {
			t.Errorf("Name() = %q; want %q", lock.Name(), name)
		}
		locks = append(locks, lock)
	}
	for _, name := range names {
		MustBeHeld(t, b, name)
	}
	for _, lock := range locks {
		MustLive(t, lock)
		MustRelease(t, lock)
		MustRelease(t, MustTry(t, b, lock.Name()))
	}
}

func (s nameTests) invalidNames(t *testing.T) {
	l := s.locker(t)
	for _, name := range []string{"", strings.Repeat("x", 1025), strings.Repeat("x", 10<<10)} {
		_, err := l.TryAcquire(bounded(t), name)
		mustMatch(t, err, sqllock.ErrName)
		_, err = l.Acquire(bounded(t), name)
		mustMatch(t, err, sqllock.ErrName)
		if len(err.Error()) > 400 {
			t.Errorf("the error for a name of %d bytes has %d", len(name), len(err.Error()))
		}
	}
}
