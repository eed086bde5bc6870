// Package cronlock makes the jobs of cron (github.com/robfig/cron/v3) run on one of N machines that have the same schedule.
// It uses leases (package leasetable).
//
// # Use
//
// A job that every machine starts at three o'clock, and one machine runs. The tables of leases have to be there: sqllock
// schema apply, or schema.Apply from Go.
//
//	leases, err := leasetable.FromDB(db)
//	if err != nil {
//		return err
//	}
//	defer leases.Close()
//
//	once, err := cronlock.Once(leases, "nightly report", time.Minute)
//	if err != nil {
//		return err
//	}
//	c := cron.New()
//	_, err = c.AddJob("0 3 * * *", cron.NewChain(once).Then(cron.FuncJob(report)))
//
// # Why a minimum hold
//
// The clocks of the machines differ, and a job may be shorter than the difference: without a minimum hold, a machine that
// is late finds the lock released, and runs the job again. So Once requires one. Choose more than twice the sum of what the
// clocks differ and what an acquisition takes, which may begin by connecting, and less than the time between two runs. A machine that has
// not acquired the lease after that time skips the run.
//
// While the database cannot be used, a machine tries again, for half of the minimum hold, and a minute at most: with
// a minimum hold of a minute, a server that restarts as the job is due may be away for half a minute. The other half is for
// the clocks. The context that cron's Stop returns ends only after that. To end it sooner, close the leasetable.Locker first.
//
// # What ends the lock
//
// It is released when the job has finished or panicked; the name then stays taken until the minimum hold has passed, which
// is counted from the acquisition. The lease of a process that was killed or cut off ends after its TTL (15 s by default),
// and the minimum hold with it. If the clock of the database was set back, also by a failover, a machine takes such
// a lease over when it finds it unchanged a TTL or more after an earlier run, which was skipped. A name in its minimum hold
// stays taken until that clock has caught up, or until sqllock release --force. See package leasetable.
//
// # When it does not protect
//
// The job must be due at the same time on all machines: give them the same time zone (cron.WithLocation, or CRON_TZ in the
// schedule). cron counts @every and cron.Every from the start of each machine. So machines that started at different times
// have different due times, and each machine whose due time comes after the minimum hold runs the job.
//
// A job of cron cannot be interrupted. If the lease is lost, the job goes on, while another machine may run it again; the
// loss is logged when the job has finished or panicked, and by the leasetable.Locker at once. A job that must stop then
// calls [sqllock.TryDo] itself, with leasetable.WithHoldAtLeast: its context ends with the lease.
//
// A machine that is late by more than the minimum hold, by its clock or after a suspension, runs the job again. If the
// database cannot be used for half of the minimum hold, or for a minute, or lacks the tables, no machine runs the job; that is logged.
package cronlock
