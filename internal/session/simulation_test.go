package session_test

import (
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/internal/seeds"
	"github.com/sqllock/sqllock/internal/session/internal/simulation"
)

const (
	simulatedSeeds = 3000
	simulatedTime  = 20 * time.Second // with fewer seeds on a slow machine
)

// See docs/simulation.md.
func TestSimulation(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	seeds.Test(t, simulation.New(t), simulatedSeeds, simulatedTime)
}
