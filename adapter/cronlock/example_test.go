package cronlock_test

import (
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/sqllock/sqllock/adapter/cronlock"
	"github.com/sqllock/sqllock/internal/adaptertest"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

func addReport(c *cron.Cron, leases *leasetable.Locker, report func()) error {
	once, err := cronlock.Once(leases, "nightly report", time.Minute) // more than clocks differ, less than the time between two runs
	if err != nil {
		return err
	}
	_, err = c.AddJob("0 3 * * *", cron.NewChain(once).Then(cron.FuncJob(report)))
	return err
}

func TestTheExample(t *testing.T) {
	t.Parallel()
	p := adaptertest.At(t, sqltest.EnginePostgres, true)
	c, ran := cron.New(), 0
	for range 2 { // machines
		if err := addReport(c, p.Leases(t), func() { ran++ }); err != nil {
			t.Fatal(err)
		}
	}
	locktest.Eventually(t, "the report is made", func() bool { // a busy server may not answer in time: then both machines skip the job
		for _, entry := range c.Entries() {
			entry.WrappedJob.Run()
		}
		return ran > 0
	})
	if ran != 1 {
		t.Errorf("the report was made %d times", ran)
	}
}
