package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
)

// inspectTimeout bounds asking for a holder.
const inspectTimeout = 5 * time.Second

// heldBy is the error for a lock that is held, or that was not taken before the wait was over.
// The holder is asked for if it is not known yet, or, as on MySQL, not what it calls itself.
func (r *run) heldBy(ctx context.Context, l locker, err error) error {
	var seen *sqllock.HeldError
	var holder sqllock.Holder
	held := errors.As(err, &seen)
	if held {
		holder = seen.Holder
	}
	if holder.Owner == "" {
		ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
		defer cancel()
		now, heldNow, failure := l.holder(ctx, r.name)
		if failure != nil && !held { // not even this was answered
			return fail(exitUnavailable, fmt.Errorf("%w: %w", err, failure))
		}
		if failure == nil && heldNow {
			holder, held = now, true
		}
	}
	holder = unsigned(r.name, holder)
	if r.wait.ends() {
		holder.Waiters = 0 // the server may still count the one that has given up
	}
	switch early := r.giveUpEarly && !errors.Is(err, context.DeadlineExceeded); {
	case !held: // nobody does the work instead: --on-held is not about that
		return fail(exitHeld, fmt.Errorf("lock %q was not taken in time%s", r.name, r.waited(early)))
	case r.onHeld == 0: // cron would send a mail of whatever is said
		return &exitError{}
	default:
		return fail(r.onHeld, fmt.Errorf("lock %q is %s%s", r.name, heldHow(holder), r.waited(early)))
	}
}

// heldHow says of a lock that is held who holds it, as far as that is known.
func heldHow(holder sqllock.Holder) string {
	by := holder.String()
	switch {
	case by == "":
		return "held"
	case isKept(holder):
		return "kept after its release (--at-least): " + by
	}
	return "held by " + by
}

// isKept reports whether it is a lease of nobody: one that was released, but is not free yet.
func isKept(holder sqllock.Holder) bool { return holder.PID == 0 && !holder.Until.IsZero() }

// waited says what was waited, if anything was.
func (r *run) waited(early bool) string {
	switch {
	case early:
		return fmt.Sprintf(" (not waited for: unless it is released it outlasts --wait %v)", r.wait.limit)
	case r.wait.ends():
		return fmt.Sprintf(" (waited %v)", r.wait.limit)
	}
	return ""
}

// limitError is the error for a lock that others hold together, with a limit or without one, but that was asked for the other way.
func (r *run) limitError(err *leasetable.LimitError) error {
	flag := func(limit int) string {
		if limit == 0 {
			return "--shared"
		}
		return fmt.Sprintf("--limit %d", limit)
	}
	text := fmt.Sprintf("lock %q was asked for with %s, and is held with %s", r.name, flag(err.Asked), flag(err.Held))
	if by := err.Holder.String(); by != "" {
		text += " by " + by
	}
	return errors.New(text + "; everybody has to ask for the same")
}
