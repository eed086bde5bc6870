// Package otellock reports what happens to locks as metrics and spans of OpenTelemetry. With OpenTelemetry's exporter for
// Prometheus they are metrics of Prometheus, too: dashboard.json is a dashboard for Grafana, and alerts.yml has alert rules.
// docs/metrics.md of the repository explains them.
//
// # Use
//
// One Recorder serves any number of Lockers, of any kind:
//
//	recorder, err := otellock.New()
//	if err != nil {
//		return err
//	}
//	defer recorder.Close()
//
//	locker, err := pg.FromDB(db, pg.WithHook(recorder.Hook)) // or mysql.WithHook, leasetable.WithHook
//
// New uses the global providers, unless WithMeterProvider or WithTracerProvider names others. A program that has a hook
// of its own calls Hook from it.
//
// # Metrics
//
// Durations are in seconds.
//
//	sqllock.acquire.duration  histogram         from the request of a lock to its outcome
//	sqllock.wait.duration     histogram         the same, of requests that had to wait
//	sqllock.hold.duration     histogram         from the acquisition to the end of a lock
//	sqllock.renew.duration    histogram         one attempt to renew a lease or a session that holds locks
//	sqllock.lost              counter           locks that ended before their release
//	sqllock.locks             up-down counter   locks that are held
//	sqllock.waiters           up-down counter   requests that wait
//	sqllock.remaining         observable gauge  how long all locks that are held last without another renewal: the least
//
// The attributes:
//
//   - sqllock.kind, of all: session or lease.
//   - db.system.name, of histograms and sqllock.lost: postgresql, mysql, mariadb or sqlite.
//   - sqllock.outcome of acquire and wait: acquired; held, if the call did not wait; timeout, if its wait was too short; or
//     error. Of renew: renewed or error.
//   - sqllock.end of hold: released, lost, expired, or closed if the Locker was closed.
//   - error.type of sqllock.lost, and of all outcomes but acquired and renewed: held, lost, expired, closed, refused,
//     schema, read_only, name, limit, unsupported, timeout, canceled, unavailable (another error that may pass, see
//     sqllock.IsRetryable), or _OTHER.
//   - sqllock.name, of all but sqllock.renew.duration and sqllock.remaining, only with WithNames: a program may have
//     more names of locks than a store of metrics can take.
//
// # Spans
//
// An acquisition that ends is a span sqllock.acquire, if its context has a span to be the parent. It has the attributes of
// sqllock.acquire.duration and, if a lease was acquired, sqllock.token, the fencing token. It is an error if the outcome is
// timeout or error. Renewals are no spans.
//
// # What it costs
//
// The hook is called by the goroutines that acquire, release and renew, and needs some microseconds. It does no I/O, as
// long as the providers do none: use a batching span processor.
package otellock
