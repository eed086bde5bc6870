package otellock_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/sqllock/sqllock/internal/locktest"
)

func TestMain(m *testing.M) {
	locktest.MostTestsWait(3)
	os.Exit(locktest.RunTests(m, func() error { return goleak.Find() }))
}
