package otellock

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/event"
)

const scope = "github.com/sqllock/sqllock/otellock"

// Recorder records the events of Lockers as metrics and spans.
type Recorder struct {
	instruments
	tracer       trace.Tracer
	name         func(string) string // may be nil
	registration metric.Registration

	mu    sync.Mutex
	holds map[event.Holds]string // guarded by mu: the kind of each Locker that may hold locks
	most  int                    // guarded by mu: how many there may be until those that hold nothing are forgotten
}

// New returns a Recorder. Its error is that of a provider that does not make an instrument.
func New(opts ...Option) (*Recorder, error) {
	c := config{meters: otel.GetMeterProvider(), tracers: otel.GetTracerProvider()}
	for _, opt := range opts {
		opt(&c)
	}
	if c.meters == nil || c.tracers == nil {
		return nil, errors.New("otellock: a provider is nil")
	}
	r := &Recorder{
		tracer: c.tracers.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL)),
		name:   c.name,
		holds:  make(map[event.Holds]string),
	}
	meter := c.meters.Meter(scope, metric.WithSchemaURL(semconv.SchemaURL))
	var err error
	if r.instruments, err = newInstruments(meter); err != nil {
		return nil, err
	}
	r.registration, err = meter.RegisterCallback(r.observe, r.remaining)
	return r, err
}

// Close ends the observation of sqllock.remaining, which otherwise goes on as long as the provider of meters. The Hook
// may be called afterwards.
func (r *Recorder) Close() error { return r.registration.Unregister() }

// Hook records an event. It is for WithHook of pg, mysql and leasetable.
func (r *Recorder) Hook(ctx context.Context, e sqllock.Event) {
	switch e.Kind {
	case event.Waiting:
		r.waiters.Add(ctx, 1, r.counted(e))
	case event.Waited:
		r.waiters.Add(ctx, -1, r.counted(e))
		r.wait.Record(ctx, e.Took.Seconds(), with(r.outcome(ctx, e)))
	case event.Acquired:
		r.acquired(ctx, e)
	case event.Failed:
		outcome := r.outcome(ctx, e)
		r.acquire.Record(ctx, e.Took.Seconds(), with(outcome))
		r.span(ctx, e, outcome)
	case event.Released, event.Lost:
		r.ended(ctx, e)
	case event.Renewed, event.RenewalFailed:
		r.renewed(ctx, e)
	case event.Retrying, event.Expiring: // sqllock.waiters and sqllock.remaining show them
	}
}

func (r *Recorder) acquired(ctx context.Context, e sqllock.Event) {
	known := r.observed(e.Locker)
	outcome := r.outcome(ctx, e)
	r.acquire.Record(ctx, e.Took.Seconds(), with(outcome))
	r.locks.Add(ctx, 1, r.counted(e))
	if !known || r.name != nil {
		for _, t := range []string{typeLost, typeExpired} { // Prometheus sees an increase only of what was there before
			r.lost.Add(ctx, 0, with(r.described(e, semconv.ErrorTypeKey.String(t))))
		}
	}
	if e.Token != 0 { // of the span alone: each token would be a time series
		outcome = append(outcome, tokenKey.Int64(e.Token))
	}
	r.span(ctx, e, outcome)
}

// observed makes observe ask a Locker, and reports whether it did before. An event of a test may have no Holds. Nobody may
// collect, so it also forgets Lockers that hold nothing, now and then.
func (r *Recorder) observed(l event.Locker) (before bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, before = r.holds[l.Holds]
	if l.Holds != nil && !before {
		if len(r.holds) > r.most {
			maps.DeleteFunc(r.holds, func(other event.Holds, _ string) bool { _, held := other.Remaining(); return !held })
			r.most = 2*len(r.holds) + 10
		}
		r.holds[l.Holds] = l.Kind
	}
	return before
}

func (r *Recorder) ended(ctx context.Context, e sqllock.Event) {
	r.locks.Add(ctx, -1, r.counted(e))
	end := endOf(e)
	r.hold.Record(ctx, e.Took.Seconds(), with(r.described(e, endKey.String(end))))
	if e.Kind == event.Lost {
		r.lost.Add(ctx, 1, with(r.described(e, semconv.ErrorTypeKey.String(lossType(e.Err)))))
	}
}

// renewed records a renewal of what holds a lock. If another one fails, nothing is lost.
func (r *Recorder) renewed(ctx context.Context, e sqllock.Event) {
	if e.Locks == 0 {
		return
	}
	attrs := r.described(e, outcomeKey.String("renewed"))
	if e.Err != nil {
		attrs = r.described(e, outcomeKey.String(outcomeError), semconv.ErrorTypeKey.String(errorType(e.Err)))
	}
	r.renew.Record(ctx, e.Took.Seconds(), with(attrs))
}

// observe reports the least remaining time of each kind of lock. It forgets Lockers that hold nothing: their next lock
// brings them back, because it is held before its event comes, and that waits for mu.
func (r *Recorder) observe(_ context.Context, o metric.Observer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	least := make(map[string]time.Duration)
	for holds, kind := range r.holds {
		left, held := holds.Remaining()
		if !held {
			delete(r.holds, holds)
			continue
		}
		if before, more := least[kind]; !more || left < before {
			least[kind] = left
		}
	}
	for kind, left := range least {
		o.ObserveFloat64(r.remaining, left.Seconds(), metric.WithAttributes(kindKey.String(kind)))
	}
	return nil
}

// span records an acquisition that has ended as a child of the span in ctx, if there is one.
func (r *Recorder) span(ctx context.Context, e sqllock.Event, attrs []attribute.KeyValue) {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return
	}
	end := time.Now()
	_, span := r.tracer.Start(ctx, "sqllock.acquire", trace.WithTimestamp(end.Add(-e.Took)), trace.WithAttributes(attrs...))
	if e.Err != nil && outcomeOf(ctx, e) != outcomeHeld {
		span.SetStatus(codes.Error, requestType(ctx, e.Err))
	}
	span.End(trace.WithTimestamp(end))
}
