// Package observe reports what happens to locks, to a logger and a hook.
package observe

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/event"
	"github.com/sqllock/sqllock/internal/hold"
	"github.com/sqllock/sqllock/internal/option"
)

// Sink has the logger and the hook, and the Locker that reports to them. Logger and Hook may be nil.
type Sink struct {
	Logger *slog.Logger
	Hook   func(context.Context, sqllock.Event)
	Locker func() event.Locker
}

func (s Sink) disabled() bool { return s.Logger == nil && s.Hook == nil }

// Request is an acquisition, as it is reported.
type Request struct {
	Name   string
	Began  time.Time
	Waited bool          // it had to wait
	Token  int64         // the fencing token of a lease that was acquired
	Whole  *option.Whole // see option.Options
}

// Asked reports how an acquisition ended: with err or, if that is nil, with h, whose end it will report as well. What is a part
// of a whole is reported with that, except that its wait is over.
func (s Sink) Asked(ctx context.Context, r Request, h *hold.Hold, err error) {
	if s.disabled() {
		return
	}
	if r.Waited {
		s.tell(ctx, slog.LevelDebug, sqllock.Event{Kind: event.Waited, Name: r.Name, Took: time.Since(r.Began), Err: err})
	}
	switch {
	case err != nil:
		s.failed(ctx, r, err)
	case r.Whole != nil:
		s.askedAsPart(r, h)
	default:
		s.acquired(ctx, r, h)
	}
}

// askedAsPart has the whole report how a part ended that was acquired.
func (s Sink) askedAsPart(r Request, h *hold.Hold) {
	r.Whole.Add(func(ctx context.Context, err error) {
		over := context.Cause(h.Context())                      //nolint:contextcheck // the lock has a context of its own
		if err == nil && errors.Is(over, sqllock.ErrReleased) { // a Locker of the user's did that, which wraps this one
			err = over
		}
		if err != nil {
			s.failed(ctx, r, &sqllock.OpError{Op: "acquire", Name: r.Name, Err: err})
			return
		}
		s.acquired(ctx, r, h)
	})
}

func (s Sink) failed(ctx context.Context, r Request, err error) {
	s.tell(ctx, slog.LevelDebug, sqllock.Event{Kind: event.Failed, Name: r.Name, Took: time.Since(r.Began), Waited: r.Waited, Err: err})
}

// acquired reports that h was acquired, and its end when it comes.
func (s Sink) acquired(ctx context.Context, r Request, h *hold.Hold) {
	acquired, name, token := time.Now(), r.Name, r.Token
	defer h.Watch(func(err error) { //nolint:contextcheck // the lock has a context of its own; also if a hook panics, which may have counted it
		e := sqllock.Event{Kind: event.Lost, Name: name, Token: token, Took: time.Since(acquired), Err: err}
		level := slog.LevelWarn
		if err == nil || errors.Is(err, sqllock.ErrClosed) {
			e.Kind, level = event.Released, slog.LevelDebug
		}
		s.tell(h.Context(), level, e)
	})
	s.tell(ctx, slog.LevelDebug, sqllock.Event{Kind: event.Acquired, Name: name, Token: token, Took: acquired.Sub(r.Began), Waited: r.Waited})
}

// Waiting reports that an acquisition, which began at the given time, has to wait. Asked with waited set follows.
func (s Sink) Waiting(ctx context.Context, name string, began time.Time) {
	if !s.disabled() {
		s.tell(ctx, slog.LevelDebug, sqllock.Event{Kind: event.Waiting, Name: name, Took: time.Since(began)})
	}
}

// Retrying reports that an acquisition, which began at the given time, got err and continues.
func (s Sink) Retrying(ctx context.Context, name string, began time.Time, err error) {
	if !s.disabled() {
		s.tell(ctx, slog.LevelWarn, sqllock.Event{Kind: event.Retrying, Name: name, Took: time.Since(began), Err: err})
	}
}

// Renewed reports that the server confirmed a session or lease with so many locks.
func (s Sink) Renewed(ctx context.Context, took time.Duration, locks int) {
	if !s.disabled() {
		s.apart(ctx, slog.LevelDebug, sqllock.Event{Kind: event.Renewed, Took: took, Locks: locks})
	}
}

// RenewalFailed reports that the server did not confirm a session or lease with so many locks.
func (s Sink) RenewalFailed(ctx context.Context, took time.Duration, locks int, err error) {
	if !s.disabled() {
		s.apart(ctx, slog.LevelDebug, sqllock.Event{Kind: event.RenewalFailed, Took: took, Locks: locks, Err: err})
	}
}

// Expiring reports that so many locks end after the time that is left, unless they are renewed before.
func (s Sink) Expiring(ctx context.Context, left time.Duration, locks int) {
	if !s.disabled() {
		s.tell(ctx, slog.LevelWarn, sqllock.Event{Kind: event.Expiring, Left: left, Locks: locks})
	}
}

// apart is tell for the goroutine that keeps locks alive: that goes on if the logger or the hook ends its goroutine, as
// testing.T.FailNow does.
func (s Sink) apart(ctx context.Context, level slog.Level, e sqllock.Event) {
	var told sync.WaitGroup
	told.Go(func() { s.tell(ctx, level, e) })
	told.Wait()
}

// tell logs e and then calls the hook. The log comes first: a hook may take its time.
func (s Sink) tell(ctx context.Context, level slog.Level, e sqllock.Event) {
	s.log(ctx, level, e)
	if s.Hook != nil {
		e.Locker = s.Locker()
		s.Hook(ctx, e)
	}
}

func (s Sink) log(ctx context.Context, level slog.Level, e sqllock.Event) {
	if s.Logger == nil || !s.Logger.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{slog.Duration("took", e.Took)}
	if e.Kind == event.Expiring {
		attrs[0] = slog.Duration("left", e.Left)
	}
	if e.Name == "" {
		attrs = append(attrs, slog.Int("locks", e.Locks))
	} else {
		attrs = append(attrs, slog.String("lock", e.Name))
	}
	if e.Token != 0 {
		attrs = append(attrs, slog.Int64("token", e.Token))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.Any("err", e.Err))
	}
	s.Log(ctx, level, "lock "+string(e.Kind), attrs...)
}

// Forced logs the outcome of an operation of an administrator that takes a lock from its holder: it was done, or nobody held the
// lock, or it failed with err, though it may have been done.
func (s Sink) Forced(ctx context.Context, operation, name string, holder sqllock.Holder, done bool, err error) {
	attrs := []slog.Attr{slog.String("lock", name)}
	level, outcome := slog.LevelWarn, "done"
	switch {
	case err != nil:
		outcome = "failed"
	case !done:
		level, outcome = slog.LevelInfo, "not held"
	}
	attrs = append(attrs, slog.String("outcome", outcome))
	if holder.Owner != "" {
		attrs = append(attrs, slog.String("owner", holder.Owner))
	}
	if holder.Token != 0 {
		attrs = append(attrs, slog.Int64("token", holder.Token))
	}
	if holder.Session != 0 {
		attrs = append(attrs, slog.Int64("session", holder.Session))
	}
	if err != nil {
		attrs = append(attrs, slog.Any("err", err))
	}
	s.Log(ctx, level, operation, attrs...)
}

// Purged logs how many rows were deleted of leases that had expired so long ago.
func (s Sink) Purged(ctx context.Context, ago time.Duration, deleted int64, err error) {
	attrs := []slog.Attr{slog.Int64("deleted", deleted), slog.Duration("ago", ago)}
	level := slog.LevelInfo
	switch {
	case err != nil:
		level, attrs = slog.LevelWarn, append(attrs, slog.Any("err", err))
	case deleted == 0:
		level = slog.LevelDebug
	}
	s.Log(ctx, level, "purge of expired leases", attrs...)
}

// Log logs something that is not an event.
func (s Sink) Log(ctx context.Context, level slog.Level, msg string, attrs ...slog.Attr) {
	if s.Logger != nil {
		s.Logger.LogAttrs(ctx, level, msg, attrs...)
	}
}
