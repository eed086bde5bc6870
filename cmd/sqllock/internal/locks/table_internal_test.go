package locks

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/console"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/database"
)

func TestAnOrdinaryTableFitsATerminalAndIsAligned(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := now.Add
	entries := []entry{
		{name: "nightly-report", kind: database.KindLease, state: stateHeld, Holder: sqllock.Holder{
			Owner: "sqllock run sh", Host: "web-1", PID: 4711, Token: 42, Since: at(-192 * time.Second), Until: at(11 * time.Second),
		}},
		{name: "deploy", kind: database.KindLease, state: stateExpired, Holder: sqllock.Holder{Token: 7, Since: at(-50 * time.Hour), Until: at(-time.Hour)}},
		{name: "kept", kind: database.KindLease, state: stateKept, Holder: sqllock.Holder{Token: 1, Since: at(-time.Second), Until: at(time.Minute)}},
		{serverName: "sqllock_" + strings.Repeat("0123456789ab", 4), kind: database.KindSession, state: stateHeld, Holder: sqllock.Holder{
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
	must(t, printTable(&b, entries, now, math.MaxInt))
	if got := "\n" + b.String(); got != want {
		t.Errorf("the table is %s\nwant %s", got, want)
	}
	b.Reset()
	must(t, printTable(&b, entries[:3], now, math.MaxInt))
	for line := range strings.Lines(b.String()) {
		if len(line) > 80 {
			t.Errorf("a long line: %s", line)
		}
	}
	b.Reset()
	must(t, printTable(&b, entries, now, 72))
	for line := range strings.Lines(b.String()) {
		if len([]rune(line)) > 72+1 {
			t.Errorf("a line is wider than the terminal: %s", line)
		}
	}
	b.Reset()
	entries[3].Waiters = 2
	must(t, printTable(&b, entries, now, math.MaxInt))
	if !strings.Contains(b.String(), "WAITING") || !strings.Contains(b.String(), "  2\n") {
		t.Errorf("nobody waits in %s", b.String())
	}
}

func TestJSONHasEveryByteAndNothingThatATerminalObeys(t *testing.T) {
	t.Parallel()
	hostile := "\x1b\x7f\u009b\u202e\U000e0001<>&\"\\🔒"
	var b bytes.Buffer
	must(t, printJSON(&b, []entry{{name: hostile, Holder: sqllock.Holder{Metadata: "\xff"}}}, time.Now()))
	if got := console.Printable(b.String()); got != strings.ReplaceAll(b.String(), "\n", `\n`) {
		t.Errorf("not all of it is printable: %s", got)
	}
	var all jsonLocks
	must(t, json.Unmarshal(b.Bytes(), &all))
	got := all.Locks
	if got[0].Name != hostile || got[0].NameBytes != nil || string(got[0].MetadataBytes) != "\xff" {
		t.Errorf("it became %+v", got[0])
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
