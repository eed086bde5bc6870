package sqllock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sqllock/sqllock/internal/option"
)

// AcquireAll acquires every name, or none. It first tries for all names at once, which can be a single statement. If
// one is held, it waits for the names one after the other, in sorted order, so that two callers with overlapping names
// cannot deadlock. Once it has the first name, it tries for all others at once. A name given twice is acquired once.
//
// If one of the locks that it has already ends while it waits, AcquireAll fails with the cause. After an error the caller
// holds nothing, and a minimum hold does not count. The error matches ErrUnsupported if an option makes several names the
// same lock.
func AcquireAll[L Lock](ctx context.Context, l Acquirer[L], names []string, opts ...Option) (got *Locks[L], err error) {
	if len(names) == 0 {
		return nil, &OpError{Op: "acquire all", Err: errors.New("no names were given")}
	}
	sorted := slices.Compact(slices.Sorted(slices.Values(names)))

	all := &Locks[L]{name: strings.Join(sorted, ",")}
	if oneKey := all.bound(opts); oneKey != "" && len(sorted) > 1 {
		return nil, &OpError{Op: "acquire all", Name: all.name, Err: fmt.Errorf("%w: %s makes all names the same lock", ErrUnsupported, oneKey)}
	}
	// The lock's lifetime context does not end with the context of its acquisition.
	all.ctx, all.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	defer func() {
		if got == nil { // also if a hook or a driver panics
			all.cancel(ErrReleased)
			failed := cmp.Or(err, errUnreturned)
			err = errors.Join(err, all.giveUp(ctx))
			all.whole.Tell(ctx, failed)
		}
	}()
	if err := all.acquire(ctx, l, sorted, opts); err != nil {
		return nil, err
	}
	all.whole.Tell(ctx, nil)
	for _, part := range all.parts {
		context.AfterFunc(part.Context(), func() { all.cancel(context.Cause(part.Context())) }) //nolint:contextcheck // the part's own
	}
	return all, nil
}

// Locks holds the locks that [AcquireAll] acquired. It is a Lock itself, which ends as soon as one of its parts does.
type Locks[L Lock] struct {
	name   string
	ctx    context.Context //nolint:containedctx // the lock's own lifetime
	cancel context.CancelCauseFunc
	parts  []L

	whole option.Whole // reports the parts to the hook of their Locker
	end   time.Time    // when the wait must end, if WithWait bounds it
}

// Name returns the sorted names joined by commas.
func (a *Locks[L]) Name() string { return a.name }

// Context is cancelled when the first part ends, with the cause of that part.
func (a *Locks[L]) Context() context.Context { return a.ctx }

// Parts returns one lock for each name, in the order of the sorted names. Release the [Locks] and not a part: the Release of
// a part frees its name a moment before the context of the Locks ends.
func (a *Locks[L]) Parts() []L { return slices.Clone(a.parts) }

// Release releases every part and joins their errors.
func (a *Locks[L]) Release(ctx context.Context) error {
	for _, part := range a.parts {
		if part.Context().Err() != nil { // a goroutine is about to say so; see AcquireAll
			a.cancel(context.Cause(part.Context())) //nolint:contextcheck // the part's own
		}
	}
	a.cancel(ErrReleased)
	return errors.Join(releaseAll(ctx, a.parts)...)
}

// acquire acquires names. If it fails, a.parts has the locks that it acquired before (I39).
func (a *Locks[L]) acquire(ctx context.Context, l Acquirer[L], names []string, opts []Option) error {
	if len(names) > 1 {
		if done, err := a.try(ctx, l, names, opts); done {
			return err
		}
	}
	if err := a.wait(ctx, l, names[:1], opts); err != nil {
		return err
	}
	if done, err := a.try(ctx, l, names[1:], opts); done {
		return err
	}
	return a.wait(ctx, l, names[1:], opts)
}

// asProbe marks an attempt that another one follows if it fails. It is not reported as a failed acquisition.
func asProbe(o *option.Options) { o.Probe = true }

// try acquires names if all are free. It is done if they are, or if an error does not pass while others are waited for.
func (a *Locks[L]) try(ctx context.Context, l Acquirer[L], names []string, opts []Option) (done bool, err error) {
	var tried option.Whole // what is given back is not reported: another attempt follows
	parts, err := tryAll(ctx, l, names, append(slices.Clip(opts), asProbe, tried.Part))
	a.parts = append(a.parts, parts...)
	if err == nil {
		a.whole.Join(&tried)
		return true, a.lostMeanwhile() //nolint:contextcheck // asks the parts' own contexts
	}
	lasting := lastingOf(err)
	if lasting == nil || ctx.Err() != nil || !slices.Contains(names, lasting.Name) {
		return false, nil //nolint:nilerr // wait finds out
	}
	part, err := l.TryAcquire(ctx, lasting.Name, append(slices.Clip(opts), new(option.Whole).Part)...) // no probe: an error is reported
	if err == nil {
		_ = part.Release(option.GivingBack(ctx)) // if it fails, a later wait waits until that lock ends
		return false, nil
	}
	return !IsRetryable(err), err
}

// lastingOf returns the first of the joined errors of names that does not pass.
func lastingOf(err error) (lasting *OpError) {
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok { // as tryAll has joined them
		all = joined.Unwrap()
	}
	for _, err := range all {
		if !IsRetryable(err) && errors.As(err, &lasting) {
			return lasting
		}
	}
	return nil
}

// wait waits for one name after the other, until an earlier part ends.
func (a *Locks[L]) wait(ctx context.Context, l Acquirer[L], names []string, opts []Option) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, part := range a.parts {
		defer context.AfterFunc(part.Context(), cancel)() //nolint:contextcheck // the part's own
	}
	for _, name := range names {
		part, err := l.Acquire(ctx, name, append(a.untilEnd(opts), a.whole.Part)...)
		if err == nil {
			a.parts = append(a.parts, part)
			defer context.AfterFunc(part.Context(), cancel)() //nolint:contextcheck // the part's own
		}
		if err != nil || ctx.Err() != nil { // maybe because a part has ended
			if err := cmp.Or(a.lostMeanwhile(), err); err != nil { //nolint:contextcheck // asks the parts' own contexts
				return err
			}
		}
	}
	return a.lostMeanwhile() //nolint:contextcheck // see above
}

// bound sets the end of the wait, if WithWait bounds it. It returns the option that makes all names the same lock, if there
// is one.
func (a *Locks[L]) bound(opts []Option) (oneKey string) {
	var o option.Options
	for _, opt := range opts {
		opt(&o)
	}
	if o.Wait != nil && *o.Wait >= 0 {
		a.end = time.Now().Add(*o.Wait)
	}
	return o.OneKey
}

// untilEnd limits the wait for one name to what is left of the wait for all.
func (a *Locks[L]) untilEnd(opts []Option) []Option {
	if a.end.IsZero() {
		return slices.Clip(opts)
	}
	return append(slices.Clip(opts), WithWait(max(0, time.Until(a.end))))
}

// lostMeanwhile returns an error if a part has ended. After a suspension of the machine, the context of a lease ends up to a
// second later than what is left of it. A session lock does not say what is left. (Token tells a
// lease from a lock of somebody else with a Remaining of its own.)
func (a *Locks[L]) lostMeanwhile() error {
	for _, part := range a.parts {
		lease, is := any(part).(interface {
			Remaining() time.Duration
			Token() int64
		})
		late := is && lease.Remaining() <= 0
		cause := context.Cause(part.Context())
		if late {
			cause = cmp.Or(cause, ErrExpired)
		}
		if cause != nil {
			return &OpError{Op: "acquire all with", Name: part.Name(), Err: cause}
		}
	}
	return nil
}

// giveUp releases every part (I39). It drops ErrLost and ErrExpired: the loss of a part either made the acquisition
// fail or changes nothing. It returns any other error.
func (a *Locks[L]) giveUp(ctx context.Context) error {
	errs := releaseAll(option.GivingBack(ctx), a.parts)
	return errors.Join(slices.DeleteFunc(errs, func(err error) bool { return errors.Is(err, ErrLost) || errors.Is(err, ErrExpired) })...)
}

// batchLocker is an optional interface of an Acquirer that can acquire several names in one statement: all, or none and
// an error.
type batchLocker[L Lock] interface {
	TryAcquireAll(ctx context.Context, names []string, opts ...Option) ([]L, error)
}

// tryAll acquires all names, or none.
func tryAll[L Lock](ctx context.Context, l Acquirer[L], names []string, opts []Option) ([]L, error) {
	if b, ok := l.(batchLocker[L]); ok {
		return b.TryAcquireAll(ctx, names, opts...)
	}
	locks := make([]L, len(names))
	errs := together(len(names), func(i int) (err error) {
		locks[i], err = l.TryAcquire(ctx, names[i], opts...)
		return err
	})
	err := errors.Join(errs...)
	if err == nil {
		return locks, nil
	}
	var taken []L
	for i, err := range errs {
		if err == nil {
			taken = append(taken, locks[i])
		}
	}
	releaseAll(option.GivingBack(ctx), taken) // if a release fails, a later wait waits until that lock ends
	return nil, err
}

func releaseAll[L Lock](ctx context.Context, locks []L) []error {
	return together(len(locks), func(i int) error { return locks[i].Release(ctx) })
}

// errUnreturned is the error of a call that a hook or a driver has ended by a panic or by runtime.Goexit.
var errUnreturned = errors.New("the call panicked, or ended its goroutine")

// together calls f concurrently for 0 to n-1 and returns the errors.
func together(n int, f func(i int) error) []error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		errs[i] = errUnreturned
		all.Go(func() { errs[i] = f(i) })
	}
	all.Wait()
	return errs
}
