package otellock_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/adaptertest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/otellock"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

// collected is a Recorder and what it has recorded.
type collected struct {
	*otellock.Recorder
	reader *metric.ManualReader
	spans  *tracetest.InMemoryExporter
	tracer *sdktrace.TracerProvider
}

func collect(t *testing.T, opts ...otellock.Option) *collected {
	t.Helper()
	c := &collected{reader: metric.NewManualReader(), spans: tracetest.NewInMemoryExporter()}
	c.tracer = sdktrace.NewTracerProvider(sdktrace.WithSyncer(c.spans))
	r, err := otellock.New(append(opts,
		otellock.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(c.reader))), otellock.WithTracerProvider(c.tracer))...)
	if err != nil {
		t.Fatal(err)
	}
	c.Recorder = r
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// point is one time series: the value of a counter or gauge, or the count and the sum of a histogram.
type point struct {
	value, sum float64
	unit       string
}

// points returns the series of an instrument by their attributes, as text, without the database.
func (c *collected) points(t *testing.T, instrument string) map[string]point {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := c.reader.Collect(context.WithoutCancel(t.Context()), &all); err != nil {
		t.Fatal(err)
	}
	got := make(map[string]point)
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != instrument {
				continue
			}
			add := func(attrs attribute.Set, value, sum float64) { got[text(attrs.ToSlice())] = point{value, sum, m.Unit} }
			switch data := m.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					add(p.Attributes, float64(p.Count), p.Sum)
				}
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					add(p.Attributes, float64(p.Value), 0)
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					add(p.Attributes, p.Value, 0)
				}
			default:
				t.Fatalf("%s is a %T", instrument, data)
			}
		}
	}
	return got
}

// systems returns the databases in the series of a histogram.
func (c *collected) systems(t *testing.T, instrument string) (systems []string) {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := c.reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if data, ok := m.Data.(metricdata.Histogram[float64]); ok && m.Name == instrument {
				for _, p := range data.DataPoints {
					system, _ := p.Attributes.Value("db.system.name")
					systems = append(systems, system.AsString())
				}
			}
		}
	}
	return systems
}

// text writes attributes without their common prefix, and without the database.
func text(attrs []attribute.KeyValue) string {
	var parts []string
	for _, a := range attrs {
		if a.Key != "db.system.name" {
			parts = append(parts, strings.TrimPrefix(string(a.Key), "sqllock.")+"="+a.Value.String())
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

// mustBe waits until an instrument has the series, which are those that have been added to.
func (c *collected) mustBe(t *testing.T, instrument string, want map[string]float64) {
	t.Helper()
	var got map[string]float64
	until(t, func() string { return fmt.Sprintf("%s is %v; want %v", instrument, got, want) }, func() bool {
		got = make(map[string]float64)
		for attrs, p := range c.points(t, instrument) {
			if p.value != 0 {
				got[attrs] = p.value
			}
		}
		return fmt.Sprint(got) == fmt.Sprint(want)
	})
}

// until waits until a condition is met, which has no event.
func until(t *testing.T, what func() string, met func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	for !met() {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-deadline:
			t.Fatal(what())
		}
	}
}

// recorded opens a Locker with a hook, like another process.
func recorded(t *testing.T, p adaptertest.Place, hook func(context.Context, sqllock.Event)) sqllock.Locker {
	t.Helper()
	l, closer := open(t, p, hook)
	t.Cleanup(func() {
		if err := closer.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// open is recorded without the end: the caller closes the Locker.
func open(t *testing.T, p adaptertest.Place, hook func(context.Context, sqllock.Event)) (sqllock.Locker, io.Closer) {
	t.Helper()
	var l interface {
		sqllock.Locker
		io.Closer
	}
	var err error
	switch {
	case p.Lease:
		var leases *leasetable.Locker
		if leases, err = leasetable.FromDB(p.DB.DB, leasetable.WithHook(hook)); err == nil {
			return sqllock.AnyKind(leases), leases
		}
	case p.Engine == sqltest.EnginePostgres:
		l, err = pg.FromDB(p.DB.DB, pg.WithHook(hook))
	default:
		l, err = mysql.FromDB(p.DB.DB, mysql.WithHook(hook))
	}
	if err != nil {
		t.Fatal(err)
	}
	return l, l
}

func kind(p adaptertest.Place) string {
	if p.Lease {
		return "lease"
	}
	return "session"
}

func acquire(t *testing.T, l sqllock.Locker, name string) sqllock.Lock {
	t.Helper()
	lock, err := l.Acquire(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

func release(t *testing.T, lock sqllock.Lock) {
	t.Helper()
	if err := lock.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}
