package run

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/event"
)

func TestVerboseSaysThatARenewalFailed(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	r := &run{log: slog.New(slog.NewTextHandler(&log, nil))}
	for _, kind := range []event.Kind{event.Renewed, event.RenewalFailed, event.Lost} {
		r.hear(t.Context(), sqllock.Event{Kind: kind, Locks: 1, Err: errors.New("broken")})
	}
	r.hear(t.Context(), sqllock.Event{Kind: event.RenewalFailed, Err: errors.New("broken")}) // nothing is held, or no more
	if strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), `level=WARN msg="lock renewal failed" took=0s err=broken`) {
		t.Errorf("it logged %s", log.String())
	}
}

// Several of them may write to one log.
func TestAMessageOfALostLockNamesIt(t *testing.T) {
	t.Parallel()
	r := &run{request: request{name: "x"}}
	for _, err := range []error{
		r.outcome(exit.Error{Code: 128 + 15}, sqllock.ErrLost, sqllock.ErrLost, sqllock.ErrLost),
		r.outcome(exit.Error{}, nil, sqllock.ErrExpired, sqllock.ErrExpired),
		r.outcome(exit.Error{}, nil, nil, &sqllock.OpError{Op: "release", Name: "x", Err: sqllock.ErrLost}),
	} {
		if exit.CodeOf(err) != exit.Lost || !strings.Contains(err.Error(), `"x": `) {
			t.Errorf("exit code %d: %v", exit.CodeOf(err), err)
		}
	}
}
