package leasetable_test

import (
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/internal/seeds"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/leasetable/internal/simulation"
)

const (
	simulatedSeeds = 3000
	simulatedTime  = 25 * time.Second // with fewer seeds on a slow machine
)

// See docs/simulation.md.
func TestSimulation(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	seeds.Test(t, simulation.New(t, leasetable.Keep), simulatedSeeds, simulatedTime)
}
