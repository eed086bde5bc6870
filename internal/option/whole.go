package option

import (
	"context"
	"sync"
)

// Whole is an acquisition of several names: all of them, or none. It reports its parts when it is known whether the caller gets
// them. Until then no part that was acquired is a lock of the caller's. The zero Whole has no parts.
type Whole struct {
	mu      sync.Mutex
	reports []func(context.Context, error) // guarded by mu
}

// Part is the option that makes an acquisition a part of w.
func (w *Whole) Part(o *Options) { o.Whole = w }

// Add adds a part that was acquired. report reports it: as acquired if its error is nil, otherwise as an acquisition that failed
// with the error.
func (w *Whole) Add(report func(ctx context.Context, err error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reports = append(w.reports, report)
}

// Join adds the parts of another Whole, and leaves it without parts.
func (w *Whole) Join(other *Whole) {
	for report := other.next(); report != nil; report = other.next() {
		w.Add(report)
	}
}

// Tell reports every part that was not reported before, with the context of the whole and its error. If a hook panics, it can be
// called again for the rest.
func (w *Whole) Tell(ctx context.Context, err error) {
	for report := w.next(); report != nil; report = w.next() {
		report(ctx, err)
	}
}

// next removes the first part, and returns its report, or nil if there is none.
func (w *Whole) next() (report func(context.Context, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.reports) > 0 {
		report, w.reports = w.reports[0], w.reports[1:]
	}
	return report
}
