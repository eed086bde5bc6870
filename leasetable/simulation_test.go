package leasetable_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/leasetable/internal/simulation"
)

// Variables of the environment: how many seeds to run, the first of them, and whether to show the schedule of one.
const (
	seedsEnv = "SQLLOCK_SIMULATE_SEEDS"
	seedEnv  = "SQLLOCK_SIMULATE_SEED"

	shrinkEnv = "SQLLOCK_SIMULATE_SHRINK" // for how many seconds the history that failed is shortened
)

const (
	simulatedSeeds = 3000
	simulatedTime  = 25 * time.Second // with fewer seeds on a slow machine
	shrinkTime     = 30 * time.Second
)

// See docs/simulation.md.
func TestSimulation(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	s := simulation.Search{First: 1, Count: simulatedSeeds, Within: simulatedTime}
	if n, ok := number(seedsEnv); ok {
		s.Count, s.Within = n, 0
	}
	if n, ok := number(seedEnv); ok {
		s.First = n
	}
	began := time.Now()
	s.Run(t, leasetable.Keep)
	took := time.Since(began)
	t.Logf("%d histories, from seed %d on, with %d operations in %v: %.0f histories a minute",
		s.Done.Load(), s.First, s.Ops.Load(), took.Round(time.Millisecond), float64(s.Done.Load())/took.Minutes())
	if s.Failed == nil {
		return
	}
	t.Errorf("seed %d breaks an invariant:\n%s", s.Failed.Seed, strings.Join(s.Result.Broken, "\n"))
	within := shrinkTime
	if n, ok := number(shrinkEnv); ok {
		within = time.Duration(n) * time.Second
	}
	plan := s.Failed
	if within > 0 {
		plan, _ = simulation.Shrink(t, plan, s.Result, leasetable.Keep, within)
	}
	if within > 0 || s.Count == 1 {
		t.Log(historyOf(t, plan))
	}
}

// number is a variable of the environment that is a number.
func number(name string) (n uint64, set bool) {
	n, err := strconv.ParseUint(os.Getenv(name), 10, 64)
	return n, err == nil
}

// historyOf runs a plan until it breaks an invariant, a hundred times at most, and returns what happened.
func historyOf(t *testing.T, plan *simulation.Plan) string {
	t.Helper()
	for range 100 {
		if r := simulation.Run(t, plan, leasetable.Keep, true); len(r.Broken) > 0 {
			return fmt.Sprintf("a shorter history:\n%v\n%s\n\n%s", plan, strings.Join(r.Schedule, "\n"), strings.Join(r.Broken, "\n"))
		}
	}
	return fmt.Sprintf("the plan, which breaks no invariant when it is run again:\n%v", plan)
}
