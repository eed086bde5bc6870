// Package gocronlock makes the jobs of gocron (github.com/go-co-op/gocron/v2) run on one of N machines: with a [Locker] each
// run goes to one of them if it is due on all at the same time, with an [Elector] all runs go to the leader. Both use leases
// (package leasetable).
//
// # Use
//
// The tables of leases have to be there: sqllock schema apply, or schema.Apply from Go.
//
// A Locker, for a job that is due every five minutes. Give each job a name, which is the name of its lock:
//
//	leases, err := leasetable.FromDB(db)
//	if err != nil {
//		return err
//	}
//	defer leases.Close()
//
//	locker, err := gocronlock.NewLocker(leases, time.Minute)
//	if err != nil {
//		return err
//	}
//	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
//	if err != nil {
//		return err
//	}
//	_, err = s.NewJob(gocron.CronJob("*/5 * * * *", false), gocron.NewTask(report), gocron.WithName("report"))
//
// The name of a job without gocron.WithName is that of its function, such as main.main.func1, which other programs may have,
// too.
//
// # Why a minimum hold
//
// The clocks of the machines differ, and a job may be shorter than the difference: without a minimum hold, a machine that
// is late finds the lock released, and runs the job again. So NewLocker requires one. Choose more than twice the sum of what
// the clocks differ and what an acquisition takes, which may begin by connecting, and less than the time between two runs. A machine
// that has not acquired the lease after that time skips the run.
//
// While the database cannot be used, a Locker tries again, for half of the minimum hold, and a minute at most: with a minimum hold
// of a minute, a server that restarts as the job is due may be away for half a minute. The other half is for the clocks.
//
// # What ends the lock
//
// gocron releases it when the job has finished; the name then stays taken until the minimum hold has passed, which is
// counted from the acquisition. The lease of a process that was killed or cut off ends after its TTL (15 s by default),
// and the minimum hold with it. If the clock of the database was set back, also by a failover, a machine takes such
// a lease over when it finds it unchanged a TTL or more after an earlier run, which was skipped. A name in its minimum hold
// stays taken until that clock has caught up, or until sqllock release --force. See package leasetable.
//
// An Elector leads until its Close, or until the lease is lost.
//
// # When it does not protect
//
// A Locker needs a job that is due at the same time on all machines: a CronJob, DailyJob, WeeklyJob or MonthlyJob, with the
// same gocron.WithLocation. gocron counts a DurationJob from the start of each scheduler. So machines that started at
// different times have different due times, and each machine whose due time comes after the minimum hold runs the job. To
// prevent that, let a DurationJob start at a multiple of its duration:
//
//	gocron.WithStartAt(gocron.WithStartDateTimePast(time.Now().Truncate(5 * time.Minute)))
//
// Due times also differ with DurationRandomJob, WithIntervalFromCompletion, @every in a crontab, intervals of more than one
// day, week or month, and for jobs that start immediately (WithStartImmediately, OneTimeJobStartImmediately). For these use
// an Elector.
//
// gocron does not interrupt a job whose lock is lost. While such a job goes on, another machine may run it again. A Locker
// logs the loss when the job has finished. The leasetable.Locker logs it at once, too, and leasetable.WithHook tells it. A
// job that must stop then calls [sqllock.TryDo] itself, with leasetable.WithHoldAtLeast, and uses no distributed locker.
//
// A machine that is late by more than the minimum hold runs the job again. It may be late by its clock, after a suspension,
// or by a queue of gocron: with WithLimitConcurrentJobs and LimitModeWait a run that is due is queued, and the lock is
// requested when a runner is free. Use LimitModeReschedule, which skips the run instead. The leader that follows another one
// also runs the job again if its clock is late.
//
// gocron.WithLimitedRuns limits the runs of each machine, not those of all. NewElector returns before its first campaign has
// an answer, so a job that is due at once is skipped on every machine (ErrNotLeader).
//
// If the database cannot be used for half of the minimum hold, or for a minute, or lacks the tables, no machine runs the job. A
// Locker logs each run that is skipped for that; see WithLogger. With an Elector no machine runs a job that is due while
// nobody leads. An Elector logs an error that somebody has to mend, such as missing tables. Nothing is logged
// before the first job is due: schema.Check tells at the start of the program whether the tables are there.
package gocronlock
