package sqllock

import (
	"context"
	"errors"
	"slices"
	"strings"
)

// AcquireAll acquires every name, or none. It takes them in sorted order, so that two
// callers with overlapping names cannot block each other for ever; a name given twice is
// taken once.
//
// The Lock that it returns ends as soon as one of its parts does. Its Name is the sorted
// names joined by commas. On any error nothing is held.
func AcquireAll(ctx context.Context, l Locker, names []string, opts ...Option) (Lock, error) {
	if len(names) == 0 {
		return nil, &OpError{Op: "acquire all of", Err: errors.New("no names were given")}
	}
	sorted := slices.Compact(slices.Sorted(slices.Values(names)))

	all := &allLock{name: strings.Join(sorted, ",")}
	// The lifetime context of a lock does not end with the context of its acquisition.
	all.ctx, all.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	for _, name := range sorted {
		part, err := l.Acquire(ctx, name, opts...)
		if err == nil {
			all.add(part)             //nolint:contextcheck // watches the part's own context
			err = all.lostMeanwhile() //nolint:contextcheck // asks the parts' own contexts
		}
		if err != nil {
			all.cancel(ErrReleased)
			return nil, errors.Join(err, all.giveUp(ctx))
		}
	}
	return all, nil
}

type allLock struct {
	name   string
	ctx    context.Context //nolint:containedctx // the lock's own lifetime
	cancel context.CancelCauseFunc
	parts  []Lock
}

// Name implements Lock.
func (a *allLock) Name() string { return a.name }

// Context implements Lock.
func (a *allLock) Context() context.Context { return a.ctx }

// Release releases every part, last taken first, and joins what they say.
func (a *allLock) Release(ctx context.Context) error {
	a.cancel(ErrReleased)
	var errs []error
	for _, part := range slices.Backward(a.parts) {
		errs = append(errs, part.Release(ctx))
	}
	return errors.Join(errs...)
}

func (a *allLock) add(part Lock) {
	a.parts = append(a.parts, part)
	context.AfterFunc(part.Context(), func() { a.cancel(context.Cause(part.Context())) })
}

// lostMeanwhile is checked after every wait: an earlier part may have ended during it.
func (a *allLock) lostMeanwhile() error {
	for _, part := range a.parts {
		if part.Context().Err() != nil {
			return &OpError{Op: "acquire all with", Name: part.Name(), Err: context.Cause(part.Context())}
		}
	}
	return nil
}

// giveUp releases every part. That one of them was lost is what failed the acquisition, or
// changes nothing; any other error is returned.
func (a *allLock) giveUp(ctx context.Context) error {
	var errs []error
	for _, part := range slices.Backward(a.parts) {
		if err := part.Release(ctx); !errors.Is(err, ErrLost) && !errors.Is(err, ErrExpired) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
