package sqllock

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sqllock/sqllock/internal/option"
)

// AcquireAll acquires every name, or none. It tries for all at once, which can share a statement. If one is held it waits for one name
// after the other, in sorted order, so that two callers with overlapping names cannot block each other for ever. Once it has the first
// it tries for all others at once. A name given twice is taken once. On any error nothing is held.
func AcquireAll[L Lock](ctx context.Context, l Acquirer[L], names []string, opts ...Option) (*Locks[L], error) {
	if len(names) == 0 {
		return nil, &OpError{Op: "acquire all", Err: errors.New("no names were given")}
	}
	sorted := slices.Compact(slices.Sorted(slices.Values(names)))

	all := &Locks[L]{name: strings.Join(sorted, ",")}
	// The lifetime context of a lock does not end with the context of its acquisition.
	all.bound(opts)
	all.ctx, all.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	err := all.acquire(ctx, l, sorted, opts)
	if err != nil {
		all.cancel(ErrReleased)
		return nil, errors.Join(err, all.giveUp(ctx))
	}
	for _, part := range all.parts {
		context.AfterFunc(part.Context(), func() { all.cancel(context.Cause(part.Context())) }) //nolint:contextcheck // the part's own
	}
	return all, nil
}

// Locks is what [AcquireAll] acquired. It is a Lock itself, which ends as soon as one of its parts does.
type Locks[L Lock] struct {
	name   string
	ctx    context.Context //nolint:containedctx // the lock's own lifetime
	cancel context.CancelCauseFunc
	parts  []L

	end time.Time // of the waiting, if WithWait bounds it
}

// Name returns the sorted names joined by commas.
func (a *Locks[L]) Name() string { return a.name }

// Context is cancelled when the first of the parts ends, with its cause.
func (a *Locks[L]) Context() context.Context { return a.ctx }

// Parts returns a lock for each name, in the order of the sorted names.
func (a *Locks[L]) Parts() []L { return slices.Clone(a.parts) }

// Release releases every part, and joins what they say.
func (a *Locks[L]) Release(ctx context.Context) error {
	a.cancel(ErrReleased)
	return errors.Join(releaseAll(ctx, a.parts)...)
}

// acquire takes names; what it has taken when it fails are the parts.
func (a *Locks[L]) acquire(ctx context.Context, l Acquirer[L], names []string, opts []Option) error {
	if len(names) > 1 && a.try(ctx, l, names, opts) {
		return a.lostMeanwhile() //nolint:contextcheck // asks the parts' own contexts
	}
	if err := a.wait(ctx, l, names[:1], opts); err != nil {
		return err
	}
	if a.try(ctx, l, names[1:], opts) {
		return a.lostMeanwhile() //nolint:contextcheck // asks the parts' own contexts
	}
	return a.wait(ctx, l, names[1:], opts)
}

// asProbe marks an attempt that another one follows if a name is held: it is not told as an acquisition that failed.
func asProbe(o *option.Options) { o.Probe = true }

// try takes names if all are free, and reports whether they were.
func (a *Locks[L]) try(ctx context.Context, l Acquirer[L], names []string, opts []Option) bool {
	parts, err := tryAll(ctx, l, names, append(slices.Clip(opts), asProbe))
	a.parts = append(a.parts, parts...)
	return err == nil
}

// wait takes one name after the other.
func (a *Locks[L]) wait(ctx context.Context, l Acquirer[L], names []string, opts []Option) error {
	for _, name := range names {
		part, err := l.Acquire(ctx, name, a.untilEnd(opts)...)
		if err == nil {
			a.parts = append(a.parts, part)
			err = a.lostMeanwhile() //nolint:contextcheck // asks the parts' own contexts
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bound sets the end of the waiting.
func (a *Locks[L]) bound(opts []Option) {
	var o option.Options
	for _, opt := range opts {
		opt(&o)
	}
	if o.Wait != nil && *o.Wait >= 0 {
		a.end = time.Now().Add(*o.Wait)
	}
}

// untilEnd has one name be waited for no longer than all of them may be.
func (a *Locks[L]) untilEnd(opts []Option) []Option {
	if a.end.IsZero() {
		return opts
	}
	return append(slices.Clip(opts), WithWait(max(0, time.Until(a.end))))
}

// lostMeanwhile is checked after every wait: an earlier part may have ended during it.
func (a *Locks[L]) lostMeanwhile() error {
	for _, part := range a.parts {
		if part.Context().Err() != nil {
			return &OpError{Op: "acquire all with", Name: part.Name(), Err: context.Cause(part.Context())}
		}
	}
	return nil
}

// giveUp releases every part. That one of them was lost is what failed the acquisition, or
// changes nothing; any other error is returned.
func (a *Locks[L]) giveUp(ctx context.Context) error {
	errs := releaseAll(ctx, a.parts)
	return errors.Join(slices.DeleteFunc(errs, func(err error) bool { return errors.Is(err, ErrLost) || errors.Is(err, ErrExpired) })...)
}

// batchLocker is what an Acquirer may implement that can take several names by one statement: all or, with an error, none.
type batchLocker[L Lock] interface {
	TryAcquireAll(ctx context.Context, names []string, opts ...Option) ([]L, error)
}

// tryAll takes all names, or none.
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
	releaseAll(ctx, taken) // what is not given back is waited for
	return nil, err
}

func releaseAll[L Lock](ctx context.Context, locks []L) []error {
	return together(len(locks), func(i int) error { return locks[i].Release(ctx) })
}

// together calls f for the numbers below n, at the same time.
func together(n int, f func(i int) error) []error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = f(i) })
	}
	all.Wait()
	return errs
}
