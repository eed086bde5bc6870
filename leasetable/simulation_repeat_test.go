//go:build !race

package leasetable_test

import (
	"testing"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/internal/seeds"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/leasetable/internal/simulation"
)

const repeatedSeeds = 100

// The race detector shuffles goroutines.
func TestASeedRunsTheSameAgain(t *testing.T) { //nolint:paralleltest // one goroutine at a time
	locktest.OncePerEngine(t)
	seeds.TestRepeats(t, simulation.New(t, leasetable.Keep), repeatedSeeds)
}
