package leasetable_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/history"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/sqltest"
)

// If the clock is set ahead, another client can acquire the lock before the holder knows; that is forgiven until the
// holder knows. A write that the holder guarded, or that the tokens let through, is not forgiven. After the clock was
// set back, the test sets it ahead at the end, so that the leases of all dead holders expire.
func TestNoStaleHolderWritesWhileTheClockIsSet(t *testing.T) {
	t.Parallel()
	for _, engine := range []sqltest.Engine{sqltest.EnginePostgres, sqltest.EngineMariaDB, sqltest.EngineMySQL} {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			clock := startWithClock(t, engine)
			c := newContest(t, withTables(t, clock.server.Database(t)))
			c.opts.Kills, c.opts.Stops = 1, 1
			step := func(what string, by time.Duration) {
				c.opts.Others = append(c.opts.Others, history.Harm{
					What: what, Times: 2, Forgive: by > 0,
					Do: func(context.Context, string) error { clock.step(by); return nil },
				})
			}
			step("steps of the clock by 1 h", time.Hour)
			step("steps of the clock by -1 h", -time.Hour)
			c.opts.Last = func(context.Context) error { clock.step(clock.highest - clock.ahead + time.Hour); return nil }
			c.run(t)
		})
	}
}

// clock is the clock of a server that the test owns.
type clock struct {
	server  *sqltest.Server
	ahead   time.Duration // of the machine's clock
	highest time.Duration // the largest value of ahead so far
}

// startWithClock starts a server whose clock can be set. Without a C compiler the test is skipped; with CI=true it fails.
func startWithClock(t *testing.T, engine sqltest.Engine) *clock {
	t.Helper()
	if _, err := exec.LookPath("cc"); err != nil {
		locktest.Impossible(t, "no C compiler is installed")
	}
	if container := strings.HasPrefix(os.Getenv("SQLTEST_"+strings.ToUpper(string(engine))), "docker"); container &&
		engine != sqltest.EngineMySQL && os.Getenv("CI") == "true" {
		t.Skip("to save time: another pass has this server as a program")
	}
	server := sqltest.Start(t, engine)
	server.StepClock(0)
	return &clock{server: server}
}

func (c *clock) step(by time.Duration) {
	c.ahead += by
	c.highest = max(c.highest, c.ahead)
	c.server.StepClock(by)
}
