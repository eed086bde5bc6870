package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/database"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/leasetable"
)

// heldBy returns the error for a lock that is held, or that was not acquired in time. It queries the holder if err does
// not name one, or, as on MySQL, does not know its owner text.
func (r *run) heldBy(ctx context.Context, l database.Locker, err error) error {
	var seen *sqllock.HeldError
	var holder sqllock.Holder
	held := errors.As(err, &seen)
	if held {
		holder = seen.Holder
	}
	if holder.Owner == "" {
		ctx, cancel := context.WithTimeout(ctx, database.InspectTimeout)
		defer cancel()
		now, heldNow, failure := l.Holder(ctx, r.name)
		if failure != nil && !held { // this query failed, too
			return r.unusable(fmt.Errorf("%w: %w", withoutOp(err), withoutOp(failure)))
		}
		if failure == nil && heldNow {
			holder, held = now, true
		}
	}
	holder = database.Unsigned(r.name, holder)
	if r.wait.ends() {
		holder.Waiters = 0 // the server may still count this waiter, which has given up
	}
	switch early := r.giveUpEarly && !errors.Is(err, context.DeadlineExceeded); {
	case !held: // no other holder does the work, so --on-held does not apply
		return exit.With(exit.Held, fmt.Errorf("lock %q was not taken in time%s", r.name, r.waited(early)))
	case r.onHeld == 0: // cron mails any output
		return &exit.Error{}
	default:
		return exit.With(r.onHeld, fmt.Errorf("lock %q is %s%s", r.name, heldHow(holder), r.waited(early)))
	}
}

// unusable returns the error for a database that could not be used until the end of the wait.
func (r *run) unusable(err error) error {
	return exit.With(exit.Unavailable, fmt.Errorf("lock %q was not taken%s, since the database could not be used: %w", r.name, r.waited(false), err))
}

// withoutOp returns what went wrong, without what was to be done, which the message says already.
func withoutOp(err error) error {
	if op := (*sqllock.OpError)(nil); errors.As(err, &op) {
		return op.Err
	}
	return err
}

// heldHow describes who holds a lock, as far as that is known.
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

// isKept reports whether the lease has no holder: it was released, but is not free yet.
func isKept(holder sqllock.Holder) bool { return holder.PID == 0 && !holder.Until.IsZero() }

// waited returns a remark on how long sqllock waited, or "".
func (r *run) waited(early bool) string {
	switch {
	case early:
		return fmt.Sprintf(" (not waited for: unless it is released it outlasts --wait %v)", r.wait.limit)
	case r.wait.ends():
		return fmt.Sprintf(" (waited %v)", r.wait.limit)
	}
	return ""
}

// sharingError returns the error for a lock that is held with --limit but was requested with --shared, or the other way
// round.
func (r *run) sharingError(err *leasetable.SharingError) error {
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
