package seeds

import (
	"runtime"
	"slices"
	"testing"
)

// TestRepeats runs the histories of n seeds twice, and requires that most of them are the same, step by step. In the
// others several goroutines are ready at the same moment, and the runtime chooses which one goes first.
func TestRepeats[P any](t *testing.T, simulation Simulation[P], n uint64) {
	t.Helper()
	defer oneAtATime()()
	same := uint64(0)
	for seed := range n {
		first, second := simulation.Run(simulation.Draw(seed), true), simulation.Run(simulation.Draw(seed), true)
		if slices.Equal(first.Schedule, second.Schedule) {
			same++
		}
	}
	t.Logf("%d of %d seeds ran the same again", same, n)
	if same < n*2/3 {
		t.Errorf("only %d of %d seeds ran the same again", same, n)
	}
}

// oneAtATime lets one goroutine run at a time, in an order that seldom changes, until restore is called.
func oneAtATime() (restore func()) {
	before := runtime.GOMAXPROCS(1)
	return func() { runtime.GOMAXPROCS(before) }
}
