package leasetable_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/history"
	"github.com/sqllock/sqllock/sqltest"
)

// A clock that is set ahead lets others in before the holder knows, which is forgiven until it
// does; a write that it guarded, or that tokens let through, is not. The clock that is set back is
// set ahead in the end, and by that all leases of the dead are over.
func TestNoStaleHolderWritesWhileTheClockIsSet(t *testing.T) { //nolint:paralleltest // sets the environment
	for _, engine := range []sqltest.Engine{sqltest.EnginePostgres, sqltest.EngineMariaDB, sqltest.EngineMySQL} { //nolint:paralleltest // see above
		t.Run(string(engine), func(t *testing.T) {
			clock := startWithClock(t, engine)
			c := newContest(t, withTables(t, clock.db))
			c.opts.Kills, c.opts.Stops = 1, 1
			step := func(what string, by time.Duration) {
				c.opts.Others = append(c.opts.Others, history.Harm{
					What: what, Times: 2, Forgive: by > 0,
					Do: func(ctx context.Context, _ string) error { return clock.step(ctx, by) },
				})
			}
			step("steps of the clock by 1 h", time.Hour)
			step("steps of the clock by -1 h", -time.Hour)
			c.opts.Last = func(ctx context.Context) error { return clock.step(ctx, clock.highest-clock.ahead+time.Hour) }
			c.run(t)
		})
	}
}

// clock is what a server of the test's own takes for the time.
type clock struct {
	server  *sqltest.Server
	db      *sqltest.Database
	set     func(ctx context.Context, ahead time.Duration) error
	ahead   time.Duration // of the machine's
	highest time.Duration // that it ever was ahead
}

// step sets the clock, and waits until the server has seen it.
func (c *clock) step(ctx context.Context, by time.Duration) error {
	c.ahead += by
	c.highest = max(c.highest, c.ahead)
	if err := c.set(ctx, c.ahead); err != nil {
		return err
	}
	now := "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"
	if c.db.Engine == sqltest.EnginePostgres {
		now = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for off := time.Duration(math.MaxInt64); off.Abs() > time.Minute; {
		var us int64
		if err := c.db.GetContext(ctx, &us, now); err != nil {
			return fmt.Errorf("the server's clock is %v off: %w", off, err)
		}
		off = time.Until(time.UnixMicro(us)) - c.ahead
	}
	return nil
}
