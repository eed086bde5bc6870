package session_test

import (
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/session"
)

func TestTimingKeepsTheTTLInRangeAndTheHeartbeatWithinIt(t *testing.T) {
	t.Parallel()
	for _, ttl := range []time.Duration{0, -time.Second, time.Second - 1, 25 * time.Hour} {
		if _, err := session.NewTiming(ttl, time.Second, time.Second); err == nil {
			t.Errorf("a TTL of %v was taken", ttl)
		}
	}
	for _, test := range []struct{ ttl, limit, heartbeat time.Duration }{
		{15 * time.Second, time.Hour, 5 * time.Second},
		{15 * time.Second, time.Second, time.Second},
		{time.Second, time.Second, time.Second / 3},
	} {
		timing, err := session.NewTiming(test.ttl, time.Second, test.limit)
		if err != nil || timing.TTL != test.ttl || timing.Heartbeat != test.heartbeat {
			t.Errorf("NewTiming(%v, 1s, %v) = %+v, %v", test.ttl, test.limit, timing, err)
		}
	}
}
