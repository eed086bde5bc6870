package otellock

import (
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// Boundaries of histograms, in seconds. Those that OpenTelemetry has by default are for milliseconds.
var (
	waits    = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 15, 60, 300, 1800}
	holds    = []float64{.001, .01, .1, .5, 1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 24 * 3600}
	renewals = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
)

type instruments struct {
	acquire, wait, hold, renew metric.Float64Histogram
	locks, waiters             metric.Int64UpDownCounter
	lost                       metric.Int64Counter
	remaining                  metric.Float64ObservableGauge
}

func newInstruments(m metric.Meter) (i instruments, err error) {
	var errs [8]error
	i.acquire, errs[0] = m.Float64Histogram("sqllock.acquire.duration", metric.WithUnit("s"),
		metric.WithDescription("Time from the request of a lock to its outcome."), metric.WithExplicitBucketBoundaries(waits...))
	i.wait, errs[1] = m.Float64Histogram("sqllock.wait.duration", metric.WithUnit("s"),
		metric.WithDescription("Time from the request of a lock to its outcome, of requests that had to wait."), metric.WithExplicitBucketBoundaries(waits...))
	i.hold, errs[2] = m.Float64Histogram("sqllock.hold.duration", metric.WithUnit("s"),
		metric.WithDescription("Time for which a lock was held."), metric.WithExplicitBucketBoundaries(holds...))
	i.renew, errs[3] = m.Float64Histogram("sqllock.renew.duration", metric.WithUnit("s"),
		metric.WithDescription("Time of one attempt to renew a lease or a session that holds locks."), metric.WithExplicitBucketBoundaries(renewals...))
	i.locks, errs[4] = m.Int64UpDownCounter("sqllock.locks", metric.WithUnit("{lock}"), metric.WithDescription("Locks that are held."))
	i.waiters, errs[5] = m.Int64UpDownCounter("sqllock.waiters", metric.WithUnit("{waiter}"), metric.WithDescription("Requests that wait for a lock."))
	i.lost, errs[6] = m.Int64Counter("sqllock.lost", metric.WithUnit("{lock}"), metric.WithDescription("Locks that ended before their release."))
	i.remaining, errs[7] = m.Float64ObservableGauge("sqllock.remaining", metric.WithUnit("s"),
		metric.WithDescription("Time for which all locks that are held last without another renewal."))
	return i, errors.Join(errs[:]...)
}
