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

// If the clock is set ahead, another client can acquire the lock before the holder knows; that is forgiven until the
// holder knows. A write that the holder guarded, or that the tokens let through, is not forgiven. After the clock was
// set back, the test sets it ahead at the end, so that the leases of all dead holders expire.
func TestNoStaleHolderWritesWhileTheClockIsSet(t *testing.T) { //nolint:paralleltest // sets the environment of programs
	engines := []sqltest.Engine{sqltest.EnginePostgres, sqltest.EngineMariaDB, sqltest.EngineMySQL}
	if inContainer(engines[0]) && inContainer(engines[1]) {
		t.Parallel()
	}
	for _, engine := range engines { //nolint:paralleltest // see above
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

// clock is the clock of a server that the test owns.
type clock struct {
	server  *sqltest.Server
	db      *sqltest.Database
	set     func(ctx context.Context, ahead time.Duration) error
	ahead   time.Duration // of the machine's clock
	highest time.Duration // the largest value of ahead so far
}

// step sets the clock, and waits until the server uses it.
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
