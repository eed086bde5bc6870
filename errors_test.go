package sqllock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/refusal"
)

type flaky bool

func (f flaky) Error() string   { return "the connection broke" }
func (f flaky) Retryable() bool { return bool(f) }

func TestWhatMayBeRetried(t *testing.T) {
	t.Parallel()
	held := &sqllock.HeldError{Name: "a"}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"no error":                    {nil, false},
		"held":                        {held, true},
		"held, and wrapped":           {&sqllock.OpError{Op: "acquire", Name: "a", Err: held}, true},
		"held until the deadline":     {fmt.Errorf("%w: %w", held, context.DeadlineExceeded), true},
		"held until it was closed":    {fmt.Errorf("%w: %w", held, sqllock.ErrClosed), false},
		"a connection that broke":     {fmt.Errorf("acquire: %w", flaky(true)), true},
		"a password that is wrong":    {fmt.Errorf("acquire: %w", flaky(false)), false},
		"an error that does not tell": {io.EOF, false},
		"refused":                     {&refusal.Error{}, false},
		"closed":                      {sqllock.ErrClosed, false},
		"lost":                        {sqllock.ErrLost, false},
	} {
		if got := sqllock.IsRetryable(test.err); got != test.want {
			t.Errorf("%s: IsRetryable(%v) = %t", name, test.err, got)
		}
	}
}

func TestAHeldErrorNamesTheHolderAsFarAsItIsKnown(t *testing.T) {
	t.Parallel()
	at := time.Date(2025, 4, 1, 12, 0, 0, 0, time.UTC)
	for want, holder := range map[string]sqllock.Holder{
		"lock is held": {},
		"lock is held by app@host:7, session 12, from 10.0.0.1, since 2025-04-01T12:00:00Z": {
			Owner: "app@host:7", Session: 12, Address: "10.0.0.1", Since: at,
		},
		`lock is held by "app\nERROR", on "\xff", from "\x1b[2J"`: {Owner: "app\nERROR", Host: "\xff", Address: "\x1b[2J"},
		"lock is held by app, on host, pid 7, token 3, until 2025-04-01T12:00:00Z": {
			Owner: "app", Host: "host", PID: 7, Token: 3, Until: at,
		},
		`lock is held by "app, token 9", on "h\nost", token 3`:      {Owner: "app, token 9", Host: "h\nost", Token: 3},
		`lock is held by "\"app\"", on " host", token 3`:            {Owner: `"app"`, Host: " host", Token: 3},
		`lock is held by "\xff", on Zoë's \host (é.example), pid 1`: {Owner: "\xff", Host: `Zoë's \host (é.example)`, PID: 1},
	} {
		err := &sqllock.HeldError{Holder: holder}
		if err.Error() != want || !errors.Is(err, sqllock.ErrHeld) || errors.Is(err, sqllock.ErrLost) {
			t.Errorf("the error is %q; want %q", err, want)
		}
	}
}

func TestARefusedErrorSaysWhatWasSeenAndWhatToUse(t *testing.T) {
	t.Parallel()
	err := &refusal.Error{Seen: "a pooler is in between", Instead: "use a lease"}
	if want := "refused: a pooler is in between; use a lease"; err.Error() != want || !errors.Is(err, sqllock.ErrRefused) {
		t.Errorf("the error is %q; want %q", err, want)
	}
}

func TestAnOpErrorQuotesAndShortensTheName(t *testing.T) {
	t.Parallel()
	err := &sqllock.OpError{Op: "acquire", Name: "a\x00\n", Err: io.EOF}
	if want := `sqllock: acquire "a\x00\n": EOF`; err.Error() != want || !errors.Is(err, io.EOF) {
		t.Errorf("the error is %s; want %s", err, want)
	}
	long := (&sqllock.OpError{Op: "acquire", Name: strings.Repeat("x", 5000), Err: io.EOF}).Error()
	if len(long) > 200 || !strings.Contains(long, "5000 bytes") {
		t.Errorf("the error for a long name is %q", long)
	}
}
