package main

import (
	"bytes"
	"encoding/json"
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
		if got := cell(text); got != want {
			t.Errorf("%q becomes %s, want %s", text, got, want)
		}
	}
	if got, want := printable("a\x1b[1m \xff\u202e🔒"), `a\x1b[1m \xff\u202e🔒`; got != want {
		t.Errorf("in a sentence it becomes %s, want %s", got, want)
	}
	if got, want := message(sqllock.ErrHeld), "sqllock: lock is held"; got != want {
		t.Errorf("a message is %q, want %q", got, want)
	}
	if got := message(&sqllock.HeldError{Holder: sqllock.Holder{Owner: "\x1b[2J"}}); strings.Contains(got, "\x1b") {
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
		if got := duration(d); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
}

func TestAnOrdinaryTableFitsATerminalAndIsAligned(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := now.Add
	entries := []entry{
		{name: "nightly-report", kind: kindLease, state: stateHeld, Holder: sqllock.Holder{
			Owner: "sqllock run sh", Host: "web-1", PID: 4711, Token: 42, Since: at(-192 * time.Second), Until: at(11 * time.Second),
		}},
		{name: "deploy", kind: kindLease, state: stateExpired, Holder: sqllock.Holder{Token: 7, Since: at(-50 * time.Hour), Until: at(-time.Hour)}},
		{name: "kept", kind: kindLease, state: stateKept, Holder: sqllock.Holder{Token: 1, Since: at(-time.Second), Until: at(time.Minute)}},
		{serverName: "sqllock_" + strings.Repeat("0123456789ab", 4), kind: kindSession, state: stateHeld, Holder: sqllock.Holder{
			Session: 99, Address: "10.0.0.7",
		}},
	}
	const want = `
NAME                                  KIND     TOKEN  OWNER           HOST/PID     SINCE  LEFT
nightly-report                        lease    42     sqllock run sh  web-1/4711   3m12s  11s
deploy                                lease    7      -               -            2d2h   expired
kept                                  lease    1      -               -            1s     kept 1m0s
sqllock_0123456789ab0123456789ab012…  session  -      -               10.0.0.7/99  -      -
`
	var b bytes.Buffer
	must(t, printTable(&b, entries, now))
	if got := "\n" + b.String(); got != want {
		t.Errorf("the table is %s\nwant %s", got, want)
	}
	b.Reset()
	must(t, printTable(&b, entries[:3], now))
	for line := range strings.Lines(b.String()) {
		if len(line) > 80 {
			t.Errorf("a long line: %s", line)
		}
	}
	b.Reset()
	entries[3].Waiters = 2
	must(t, printTable(&b, entries, now))
	if !strings.Contains(b.String(), "WAITING") || !strings.Contains(b.String(), "  2\n") {
		t.Errorf("nobody waits in %s", b.String())
	}
}

func TestJSONHasEveryByteAndNothingThatATerminalObeys(t *testing.T) {
	t.Parallel()
	hostile := "\x1b\x7f\u009b\u202e\U000e0001<>&\"\\🔒"
	var b bytes.Buffer
	must(t, printJSON(&b, []entry{{name: hostile, Holder: sqllock.Holder{Metadata: "\xff"}}}, time.Now()))
	if got := printable(b.String()); got != strings.ReplaceAll(b.String(), "\n", `\n`) {
		t.Errorf("not all of it is printable: %s", got)
	}
	var got []jsonEntry
	must(t, json.Unmarshal(b.Bytes(), &got))
	if got[0].Name != hostile || got[0].NameBytes != nil || string(got[0].MetadataBytes) != "\xff" {
		t.Errorf("it became %+v", got[0])
	}
}
