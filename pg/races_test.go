package pg_test

import (
	"testing"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/sqltest"
)

func TestTenThousandCancelsAtTheGrantLeaveNothing(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	locktest.Races(t,
		func(t *testing.T) locktest.Locker { t.Helper(); return newLocker(t, db) },
		func(t *testing.T) int { t.Helper(); return locksOn(t, db) },
		func(t *testing.T) int { t.Helper(); return sessionsOn(t, db) })
}
