package observe_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/event"
	"github.com/sqllock/sqllock/internal/observe"
)

func TestTheTimeThatIsLeftIsNotTheTimeThatSomethingTook(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	var told []sqllock.Event
	s := observe.Sink{
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Hook:   func(_ context.Context, e sqllock.Event) { told = append(told, e) },
		Locker: func() event.Locker { return event.Locker{} },
	}
	s.Expiring(t.Context(), 3*time.Second, 2)
	if len(told) != 1 || told[0].Left != 3*time.Second || told[0].Took != 0 || told[0].Locks != 2 {
		t.Errorf("the hook got %+v", told)
	}
	if line := log.String(); !strings.Contains(line, "left=3s locks=2") || strings.Contains(line, "took=") {
		t.Errorf("the log has %q", line)
	}
}
