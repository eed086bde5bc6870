package migratelock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-migrate/migrate/v4/database"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/adapter/migratelock"
)

// granting is a Locker that grants one lock, after a time, whatever its caller's context says.
type granting struct {
	sqllock.Locker
	after    func(ctx context.Context)
	released int
}

func (g *granting) Acquire(ctx context.Context, _ string, _ ...sqllock.Option) (sqllock.Lock, error) {
	g.after(ctx)
	return granted{of: g}, nil
}

// granted is a lock that counts its releases.
type granted struct {
	sqllock.Lock
	of *granting
}

func (l granted) Release(context.Context) error {
	l.of.released++
	return nil
}

// closing is a driver that can only be closed.
type closing struct{ database.Driver }

func (closing) Close() error { return nil }

// migrate abandons the call of Lock a second later, and then nobody would release the lock.
func TestALockThatIsGrantedAfterTheTimeoutIsReleased(t *testing.T) {
	t.Parallel()
	for late, released := range map[time.Duration]int{-time.Nanosecond: 0, 0: 1, time.Second: 1} {
		synctest.Test(t, func(t *testing.T) { // in virtual time
			locks := &granting{after: func(ctx context.Context) {
				deadline, _ := ctx.Deadline()
				<-time.After(time.Until(deadline) + late)
			}}
			d := migratelock.Wrap(closing{}, locks, "migrations")
			err := d.Lock()
			if locks.released != released || (err != nil) != (released == 1) || err != nil && !errors.Is(err, database.ErrLocked) {
				t.Errorf("%s after the timeout: %v, and %d releases", late, err, locks.released)
			}
			if err := d.Unlock(); (err == nil) != (released == 0) || locks.released != 1 {
				t.Errorf("Unlock, %s after the timeout: %v, and %d releases", late, err, locks.released)
			}
		})
	}
}

func TestALockThatIsGrantedAfterCloseIsReleased(t *testing.T) {
	t.Parallel()
	var d database.Driver
	locks := &granting{after: func(context.Context) {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}}
	d = migratelock.Wrap(closing{}, locks, "migrations")
	if err := d.Lock(); err == nil || locks.released != 1 {
		t.Errorf("Lock: %v, and %d releases", err, locks.released)
	}
	if err := d.Unlock(); !errors.Is(err, database.ErrNotLocked) {
		t.Errorf("Unlock: %v", err)
	}
}
