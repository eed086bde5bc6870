package run

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/database"
	"github.com/sqllock/sqllock/schema"
)

func TestTheLineOfAWaitSaysForWhomAndFits(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ahead := time.Hour // the database's clock is ahead
	lease := sqllock.Holder{Owner: "sqllock run sh", Host: "web-1", PID: 4711, Token: 3, Since: now.Add(ahead - 192*time.Second), Until: now.Add(ahead + 13*time.Second)}
	long := lease
	long.Owner, long.Host = strings.Repeat("long owner ", 20), strings.Repeat("host", 50)
	for want, w := range map[string]waiting{
		"waiting for x: somebody": {run: waitFor("x")},
		"waiting for x: sqllock run sh, web-1/4711, held 3m12s, 13s left": {run: waitFor("x"), holder: lease, ahead: ahead},
		"waiting for x: kept (--at-least), held 3m12s, 13s left; gives up in 20s": {
			run: waitFor("x"), ahead: ahead, until: now.Add(20 * time.Second), holder: sqllock.Holder{Token: 1, Since: lease.Since, Until: lease.Until},
		},
		"waiting for x: app, 10.0.0.7/99, held 3m12s": {
			run: waitFor("x"), ahead: ahead, holder: sqllock.Holder{Owner: "app", Address: "10.0.0.7", Session: 99, Since: lease.Since},
		},
		`waiting for a, b: "app, 10.0.0.7/99", db/1, held 3m12s`: {
			run: waitFor("a, b"), ahead: ahead, holder: sqllock.Holder{Owner: "app, 10.0.0.7/99", Address: "db", Session: 1, Since: lease.Since},
		},
		`waiting for "\x1b[2J": "\a", -, held 3m12s`: {
			run: waitFor("\x1b[2J"), ahead: ahead, holder: sqllock.Holder{Owner: "\a", Since: lease.Since},
		},
	} {
		got := w.text(now)
		if got != want {
			t.Errorf("it says %s\nwant    %s", got, want)
		}
	}

	w := waiting{run: waitFor(strings.Repeat("n", 100)), until: now.Add(time.Hour - 1), holder: long, ahead: ahead}
	got := w.text(now)
	if len([]rune(got)) != 79 || strings.Count(got, "…") != 2 || !strings.HasSuffix(got, ", held 3m12s, 13s left; gives up in 59m59s") {
		t.Errorf("a long one is %s", got)
	}
}

// silent is a locker whose database may not answer.
type silent struct {
	database.Locker
	err error
}

func (l *silent) Holder(context.Context, string) (sqllock.Holder, bool, error) {
	return sqllock.Holder{}, false, l.err
}

func TestAWaitSaysOnceThatTheDatabaseDoesNotAnswer(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	l := &silent{}
	w := waiting{run: waitFor("x"), l: l, db: &database.Database{Dialect: schema.SQLite}}
	w.log = slog.New(slog.NewTextHandler(&log, nil))
	away := errors.New("away")
	for _, l.err = range []error{nil, away, away, away, nil, nil, away} {
		w.look(t.Context())
	}
	said := regexp.MustCompile(`level=\S+ msg=("[^"]*")`).FindAllString(log.String(), -1)
	want := []string{
		`level=WARN msg="cannot ask who holds the lock"`,
		`level=INFO msg="the database answers again"`,
		`level=WARN msg="cannot ask who holds the lock"`,
	}
	if !slices.Equal(said, want) {
		t.Errorf("it logged\n%s", log.String())
	}
}

func waitFor(name string) *run { return &run{request: request{name: name}} }
