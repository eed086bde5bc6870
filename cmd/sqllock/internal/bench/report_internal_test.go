package bench

import (
	"testing"

	"github.com/sqllock/sqllock/internal/locktest"
)

func TestBars(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for share, want := range map[float64]string{0: "▏", 1: "████", 0.5: "██", 0.65: "██▋", 0.001: "▏"} {
		if got := bar(share, 4); got != want {
			t.Errorf("%v is %s, want %s", share, got, want)
		}
	}
	for seconds, want := range map[float64]string{4.567e-6: "4.57 µs", 45.67e-6: "45.7 µs", 456.7e-6: "457 µs", 1.25e-3: "1.25 ms", 2: "2.00 s"} {
		if got := shortTime(seconds); got != want {
			t.Errorf("%v is %s, want %s", seconds, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := thousands(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}
