package event_test

import (
	"testing"

	"github.com/sqllock/sqllock/event"
)

// Logs, metrics and stored events have these texts, so they must not change.
func TestKindsDoNotChange(t *testing.T) {
	t.Parallel()
	for kind, want := range map[event.Kind]string{
		event.Acquired: "acquired", event.Failed: "failed", event.Waiting: "waiting", event.Waited: "waited", event.Retrying: "retrying",
		event.Released: "released", event.Lost: "lost", event.Renewed: "renewed", event.RenewalFailed: "renewal failed", event.Expiring: "expiring",
	} {
		if string(kind) != want {
			t.Errorf("the kind is %q; want %q", kind, want)
		}
	}
}
