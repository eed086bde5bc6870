package run

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/sqllock/sqllock"
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
