package otellock_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/sqllock/sqllock/internal/locktest"
)

func TestMain(m *testing.M) {
	locktest.MostTestsWait(3)
	goleak.VerifyTestMain(m)
}
