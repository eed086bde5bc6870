package otellock

import (
	"context"
	"errors"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/event"
)

const (
	kindKey    = attribute.Key("sqllock.kind")
	outcomeKey = attribute.Key("sqllock.outcome")
	endKey     = attribute.Key("sqllock.end")
	nameKey    = attribute.Key("sqllock.name")
	tokenKey   = attribute.Key("sqllock.token")
)

const (
	outcomeAcquired = "acquired"
	outcomeHeld     = "held"
	outcomeTimeout  = "timeout"
	outcomeError    = "error"
)

const (
	typeLost    = "lost"
	typeExpired = "expired"
)

// with makes an option of attributes.
func with(attrs []attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attrs...))
}

// counted returns the attributes of an up-down counter. They do not include the database: what is added has to be taken
// away under the same attributes, and a Locker may take MariaDB for MySQL until it is connected.
func (r *Recorder) counted(e sqllock.Event) metric.MeasurementOption {
	return with(r.named(e, kindKey.String(e.Locker.Kind)))
}

// described returns the attributes of all other instruments.
func (r *Recorder) described(e sqllock.Event, more ...attribute.KeyValue) []attribute.KeyValue {
	return append(r.named(e, kindKey.String(e.Locker.Kind), semconv.DBSystemNameKey.String(e.Locker.System)), more...)
}

// named adds the name of the lock, if it is wanted. An attribute that is not UTF-8 would keep an exporter of OTLP from sending
// anything.
func (r *Recorder) named(e sqllock.Event, attrs ...attribute.KeyValue) []attribute.KeyValue {
	if r.name != nil && e.Name != "" {
		if name := r.name(e.Name); name != "" {
			attrs = append(attrs, nameKey.String(strings.ToValidUTF8(name, "\uFFFD")))
		}
	}
	return attrs
}

// outcome returns the attributes of an acquisition.
func (r *Recorder) outcome(ctx context.Context, e sqllock.Event) []attribute.KeyValue {
	attrs := r.described(e, outcomeKey.String(outcomeOf(ctx, e)))
	if e.Err != nil {
		attrs = append(attrs, semconv.ErrorTypeKey.String(requestType(ctx, e.Err)))
	}
	return attrs
}

// outcomeOf returns the outcome of an acquisition. A wait that has met an error that may pass ends for want of time only.
func outcomeOf(ctx context.Context, e sqllock.Event) string {
	waited := e.Waited || e.Kind == event.Waited
	switch {
	case e.Err == nil:
		return outcomeAcquired
	case errors.Is(e.Err, sqllock.ErrClosed):
		return outcomeError
	case errors.Is(e.Err, context.DeadlineExceeded), errors.Is(ctx.Err(), context.DeadlineExceeded):
		return outcomeTimeout
	case ctx.Err() != nil:
		return outcomeError
	case waited && sqllock.IsRetryable(e.Err):
		return outcomeTimeout
	case errors.Is(e.Err, sqllock.ErrHeld):
		return outcomeHeld
	}
	return outcomeError
}

// endOf returns how a lock ended.
func endOf(e sqllock.Event) string {
	switch {
	case errors.Is(e.Err, sqllock.ErrClosed):
		return "closed"
	case e.Kind == event.Released:
		return "released"
	case errors.Is(e.Err, sqllock.ErrExpired):
		return typeExpired
	}
	return typeLost
}

// lossType returns the kind of an error of event.Lost. What happened to the lock comes before what the database said.
func lossType(err error) string {
	switch {
	case errors.Is(err, sqllock.ErrExpired):
		return typeExpired
	case errors.Is(err, sqllock.ErrLost):
		return typeLost
	}
	return errorType(err)
}

// requestType returns the kind of the error of an acquisition whose context was ctx. A context may end with a cause of its
// own, which the error then has instead of context.Canceled.
func requestType(ctx context.Context, err error) string {
	switch {
	case errors.Is(err, sqllock.ErrClosed):
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "timeout"
	case ctx.Err() != nil:
		return "canceled"
	}
	return errorType(err)
}

// errorType returns the kind of an error. There are few of them, as of everything in an attribute. The end of a wait
// comes before what it waited for.
func errorType(err error) string {
	for _, known := range []struct {
		err  error
		kind string
	}{
		{sqllock.ErrClosed, "closed"},
		{context.DeadlineExceeded, "timeout"},
		{context.Canceled, "canceled"},
		{sqllock.ErrHeld, outcomeHeld},
		{sqllock.ErrExpired, typeExpired},
		{sqllock.ErrLost, typeLost},
		{sqllock.ErrReadOnly, "read_only"}, // before ErrRefused, which a standby is for session locks, too
		{sqllock.ErrRefused, "refused"},
		{sqllock.ErrSchema, "schema"},
		{sqllock.ErrName, "name"},
		{sqllock.ErrLimit, "limit"},
		{sqllock.ErrUnsupported, "unsupported"},
	} {
		if errors.Is(err, known.err) {
			return known.kind
		}
	}
	if sqllock.IsRetryable(err) {
		return "unavailable"
	}
	return semconv.ErrorTypeOther.Value.AsString()
}
