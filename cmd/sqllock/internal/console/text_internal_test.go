package console

import (
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
)

func TestWhatOthersCallThemselvesIsSafeOnATerminal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                          "-",
		"-":                         `"-"`,
		"plain name":                "plain name",
		"Zoë 🔒 ضفدع":                "Zoë 🔒 ضفدع",
		`C:\x`:                      `C:\x`,
		`"quoted"`:                  `"\"quoted\""`,
		" blank ":                   `" blank "`,
		"a\tb\nc":                   `"a\tb\nc"`,
		"\x1b[2J\x1b]0;title\a":     `"\x1b[2J\x1b]0;title\a"`,
		"\u009b2J":                  `"\u009b2J"`,
		"left\u202eright\u200b":     `"left\u202eright\u200b"`,
		"\xff\xfe":                  `"\xff\xfe"`,
		"\ufffd":                    "\ufffd",
		"\x00" + `\` + "\U000e0001": `"\x00\\\U000e0001"`,
	} {
		if got := Cell(text); got != want {
			t.Errorf("%q becomes %s, want %s", text, got, want)
		}
	}
	for text, want := range map[string]string{"": "-", "plain name": "plain name", "a, token 7": `"a, token 7"`, "a\nb": `"a\nb"`} {
		if got := Item(text); got != want {
			t.Errorf("in a list %q becomes %s, want %s", text, got, want)
		}
	}
	if got, want := Printable("a\x1b[1m \xff\u202e🔒"), `a\x1b[1m \xff\u202e🔒`; got != want {
		t.Errorf("in a sentence it becomes %s, want %s", got, want)
	}
	if got, want := Message(sqllock.ErrHeld), "sqllock: lock is held"; got != want {
		t.Errorf("a message is %q, want %q", got, want)
	}
	if got := Message(&sqllock.HeldError{Holder: sqllock.Holder{Owner: "\x1b[2J"}}); strings.Contains(got, "\x1b") {
		t.Errorf("a message contains an escape: %q", got)
	}
}

func TestDurationsAreRoundedToWhatMatters(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second:                      "0s",
		999 * time.Millisecond:            "0s",
		12*time.Second + 900e6:            "12s",
		3*time.Minute + 12*time.Second:    "3m12s",
		5*time.Hour + 3*time.Minute:       "5h3m",
		24 * time.Hour:                    "1d0h",
		53*time.Hour + 59*time.Minute + 1: "2d5h",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
}
