package gocronlock_test

import (
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/sqllock/sqllock/adapter/gocronlock"
	"github.com/sqllock/sqllock/internal/adaptertest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// The name of a job (gocron.WithName) is the name of its lock.
func newScheduler(leases *leasetable.Locker) (gocron.Scheduler, error) {
	locker, err := gocronlock.NewLocker(leases, time.Minute) // more than clocks differ, less than the time between two runs
	if err != nil {
		return nil, err
	}
	return gocron.NewScheduler(gocron.WithDistributedLocker(locker))
}

func TestTheExample(t *testing.T) {
	t.Parallel()
	p := adaptertest.At(t, sqltest.EnginePostgres, true)
	s, err := newScheduler(p.Leases(t))
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan struct{})
	_, err = s.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()), gocron.NewTask(func() { close(ran) }),
		gocron.WithName("once"))
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	<-ran
	if err := s.Shutdown(); err != nil {
		t.Error(err)
	}
}
