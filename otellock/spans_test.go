package otellock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/adaptertest"
)

func TestAnAcquisitionIsASpanUnderAParent(t *testing.T) {
	t.Parallel()
	adaptertest.Everywhere(t, func(t *testing.T, p adaptertest.Place) {
		c := collect(t)
		l, other := recorded(t, p, c.Hook), p.Locker(t)
		release(t, acquire(t, l, "x"))
		if spans := c.spans.GetSpans(); len(spans) != 0 {
			t.Errorf("without a parent: %v", spans)
		}

		ctx, parent := c.tracer.Tracer("test").Start(t.Context(), "parent")
		began := time.Now()
		lock, err := l.Acquire(ctx, "x")
		if err != nil {
			t.Fatal(err)
		}
		release(t, lock)
		theirs := acquire(t, other, "x")
		if _, err := l.TryAcquire(ctx, "x"); !errors.Is(err, sqllock.ErrHeld) {
			t.Fatal(err)
		}
		waiting, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		if _, err := l.Acquire(waiting, "x"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		release(t, theirs)

		acquired := "kind=" + kind(p) + " outcome=acquired"
		if lease, is := lock.(interface{ Token() int64 }); is {
			acquired += fmt.Sprintf(" token=%d", lease.Token())
		}
		spans := c.spans.GetSpans()
		want := []struct {
			attrs  string
			status codes.Code
		}{
			{acquired, codes.Unset},
			{"error.type=held kind=" + kind(p) + " outcome=held", codes.Unset},
			{"error.type=timeout kind=" + kind(p) + " outcome=timeout", codes.Error},
		}
		if len(spans) != len(want) {
			t.Fatalf("%d spans: %v", len(spans), spans)
		}
		for i, span := range spans {
			if span.Name != "sqllock.acquire" || text(span.Attributes) != want[i].attrs || span.Status.Code != want[i].status {
				t.Errorf("span %d is %s, %s, %v; want %v", i, span.Name, text(span.Attributes), span.Status, want[i])
			}
			if span.Parent.SpanID() != parent.SpanContext().SpanID() {
				t.Errorf("span %d is not under its parent", i)
			}
			if span.StartTime.Before(began.Add(-time.Millisecond)) || !span.EndTime.After(span.StartTime) {
				t.Errorf("span %d is from %v to %v", i, span.StartTime, span.EndTime)
			}
		}
		if end, _ := waiting.Deadline(); spans[2].EndTime.Before(end.Add(-time.Millisecond)) {
			t.Errorf("a wait until %v is a span until %v", end, spans[2].EndTime)
		}
	})
}
