package mysql_test

import (
	"testing"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/sqltest"
)

func TestTenThousandCancelsAtTheGrantLeaveNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		locktest.Races(t,
			func(t *testing.T) locktest.Locker { t.Helper(); return newLocker(t, db) },
			func(t *testing.T) int { t.Helper(); return waitersOn(t, db) },
			func(t *testing.T) int { t.Helper(); return sessionsOn(t, db) })
	})
}
