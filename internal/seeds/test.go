package seeds

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Variables of the environment: how many seeds to run, the first of them, and for how many seconds the history that
// failed is shortened.
const (
	seedsEnv  = "SQLLOCK_SIMULATE_SEEDS"
	seedEnv   = "SQLLOCK_SIMULATE_SEED"
	shrinkEnv = "SQLLOCK_SIMULATE_SHRINK"
)

const shrinkTime = 30 * time.Second

// Test runs so many seeds, or a thirtieth under the race detector, but begins none after the given time. The environment can
// choose others. If a history breaks an invariant, the test fails, and prints a shorter history.
func Test[P any](t *testing.T, simulation Simulation[P], count uint64, within time.Duration) {
	t.Helper()
	s := &search[P]{Simulation: simulation, first: 1, count: count / fewer, within: min(within, mostTime)}
	if n, ok := number(seedsEnv); ok {
		s.count, s.within = n, 0
	}
	if n, ok := number(seedEnv); ok {
		s.first = n
	}
	if s.count == 1 {
		defer oneAtATime()()
	}
	began := time.Now()
	s.run()
	took := time.Since(began)
	t.Logf("%d histories, from seed %d on, with %d operations in %v: %.0f histories a minute",
		s.done.Load(), s.first, s.ops.Load(), took.Round(time.Millisecond), float64(s.done.Load())/took.Minutes())
	f := s.failed
	if f == nil {
		return
	}
	t.Errorf("seed %d breaks an invariant:\n%s", f.seed, strings.Join(f.result.Broken, "\n"))
	defer oneAtATime()()
	shorten := shrinkTime
	if n, ok := number(shrinkEnv); ok {
		shorten = time.Duration(n) * time.Second
	}
	plan := f.plan
	if shorten > 0 {
		plan = simulation.shrink(f, shorten)
	}
	if shorten > 0 || s.count == 1 {
		t.Log(simulation.historyOf(plan))
	}
}

// number is a variable of the environment that is a number.
func number(name string) (n uint64, set bool) {
	n, err := strconv.ParseUint(os.Getenv(name), 10, 64)
	return n, err == nil
}

// historyOf runs a plan until it breaks an invariant, a hundred times at most, and returns what happened.
func (s Simulation[P]) historyOf(plan P) string {
	for range 100 {
		if r := s.Run(plan, true); len(r.Broken) > 0 {
			return fmt.Sprintf("a shorter history:\n%v\n%s\n\n%s", plan, strings.Join(r.Schedule, "\n"), strings.Join(r.Broken, "\n"))
		}
	}
	return fmt.Sprintf("the plan, which breaks no invariant when it is run again:\n%v", plan)
}
