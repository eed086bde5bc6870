package locks

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/console"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/database"
)

// viewOf returns a view that contains everything.
func viewOf() view {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	lease := func(name, state string, left time.Duration) entry {
		return entry{name: name, kind: database.KindLease, state: state, Holder: sqllock.Holder{
			Owner: "report.sh", Host: "web-1", PID: 4711, Token: 42, Since: now.Add(-time.Minute), Until: now.Add(left), TTL: 15 * time.Second,
		}}
	}
	long := lease("import/"+strings.Repeat("eu", 40), stateHeld, 13*time.Second)
	long.waiterSince = now
	hostile := lease("\x1b[2J", stateHeld, 4*time.Second)
	dead := lease("dead", stateExpired, -time.Second)
	return view{
		seen:   reading{entries: []entry{long, hostile, dead, {kind: database.KindLease, name: "free", state: stateFree}}, now: now},
		now:    now,
		late:   time.Second,
		lately: []happening{{now, change{eventExpired, dead}}, {now.Add(-time.Second), change{eventTaken, long}}},
	}
}

func texts(rows []console.Row) string {
	var b strings.Builder
	for _, r := range rows {
		b.WriteString(r.Text + "\n")
	}
	return b.String()
}

func TestTheViewIsReadableOn80Columns(t *testing.T) {
	t.Parallel()
	const want = `
sqllock watch 03:04:05 UTC  2 held, 1 waited for, 1 expiring, 1 expired  q quits

NAME                       KIND   OWNER      HOST/PID    SINCE  LEFT     WAITING
import/eueueueueueueueue…  lease  report.sh  web-1/4711  1m0s   13s      1+
"\x1b[2J"                  lease  report.sh  web-1/4711  1m0s   4s !     -
dead                       lease  report.sh  web-1/4711  1m0s   expired  -

03:04:05  expired  dead                                    report.sh  web-1/4711
03:04:04  taken    import/eueueueueueueueueueueueueueueu…  report.sh  web-1/4711
`
	if got := "\n" + texts(viewOf().rows(80, 24)); got != want {
		t.Errorf("it is %s\nwant %s", got, want)
	}
}

func TestTheViewFitsEveryTerminal(t *testing.T) {
	t.Parallel()
	v := viewOf()
	v.failure = errors.New("no route to host")
	for width := 1; width < 200; width += 7 {
		for height := 1; height < 30; height++ {
			rows := v.rows(width, height)
			if len(rows) > height {
				t.Fatalf("on %d × %d it has %d rows", width, height, len(rows))
			}
			for _, r := range rows {
				if len([]rune(r.Text)) > width {
					t.Fatalf("on %d × %d it has the row %q", width, height, r.Text)
				}
			}
		}
	}
	if got := texts(v.rows(80, 6)); !strings.Contains(got, "no route to host") {
		t.Errorf("it is %s", got)
	}
	v.failure, v.lately = nil, nil
	if got := texts(v.rows(80, 5)); !strings.Contains(got, "… and 2 more") {
		t.Errorf("it is %s", got)
	}
}

func TestTheViewSaysThatTheDatabaseDoesNotAnswer(t *testing.T) {
	t.Parallel()
	v := viewOf()
	v.now = v.now.Add(10 * time.Second)
	if got := texts(v.rows(80, 24)); !strings.Contains(got, "\nas it was 10s ago: the database has not answered since\n") {
		t.Errorf("it is %s", got)
	}
}
