package leasetable_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/leasetable/internal/simulation"
)

func TestSimulation(t *testing.T) {
	t.Parallel()
	n := 200
	if s := os.Getenv("SEEDS"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	first := 1
	if s := os.Getenv("SEED"); s != "" {
		first, _ = strconv.Atoi(s)
	}
	began := time.Now()
	ops := 0
	for seed := first; seed < first+n; seed++ {
		r := simulation.Run(t, simulation.NewPlan(uint64(seed)), leasetable.Keep, n == 1)
		ops += r.Ops
		if len(r.Broken) > 0 {
			t.Errorf("seed %d: %s", seed, strings.Join(r.Broken, "\n  "))
		}
		if n == 1 {
			t.Log(strings.Join(r.Schedule, "\n"))
		}
	}
	t.Logf("%d histories, %d ops in %v", n, ops, time.Since(began))
}
