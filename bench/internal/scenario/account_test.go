package scenario

import (
	"testing"
	"time"

	"github.com/sqllock/sqllock/bench/internal/fleet"
)

func TestSpansAreAccountedFor(t *testing.T) {
	t.Parallel()
	ms := func(n int64) int64 { return n * 1e6 }
	got := account([][]fleet.Span{
		{{From: ms(1), To: ms(2)}, {From: ms(10), To: ms(12)}, {From: ms(13), To: ms(15)}}, // the first one is too early
		{{From: ms(14), To: ms(16)}}, // overlaps
		{},
	}, time.Unix(0, ms(5)), time.Unix(0, ms(1005)))
	want := values{
		"handoffs_s": 3, "overlaps": 1, "unserved": 1, "served_min": 0, "served_max": 2, "again": 50, "gap_p50_us": 0, "hold_us": 2000,
	}
	for metric, want := range want {
		if got[metric] != want {
			t.Errorf("%s is %v; want %v", metric, got[metric], want)
		}
	}
}
