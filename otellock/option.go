package otellock

import (
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// Option configures a Recorder.
type Option func(*config)

type config struct {
	meters  metric.MeterProvider
	tracers trace.TracerProvider
	name    func(string) string
}

// WithMeterProvider sets where the metrics go. The default is otel.GetMeterProvider.
func WithMeterProvider(p metric.MeterProvider) Option {
	return func(c *config) { c.meters = p }
}

// WithTracerProvider sets where the spans go. The default is otel.GetTracerProvider.
func WithTracerProvider(p trace.TracerProvider) Option {
	return func(c *config) { c.tracers = p }
}

// WithNames adds the attribute sqllock.name to metrics and spans: what f returns for the name of the lock, or nothing if
// that is empty. Each name is a time series of its own in each metric, so f should return few: the name's part before a
// slash, for example. What is not UTF-8 in it becomes U+FFFD. f must be fast, and is called from many goroutines.
func WithNames(f func(name string) string) Option {
	return func(c *config) { c.name = f }
}
