package sqllock

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
)

// AcquireAll acquires every name, or none. It tries for all at once, which can share a statement. If one is held
// it waits for one after the other, in sorted order, so that
// two callers with overlapping names cannot block each other for ever; but when it has the first it
// tries for all others at once. A name given twice is taken once.
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

type allLock struct {
	name   string
	ctx    context.Context //nolint:containedctx // the lock's own lifetime
	cancel context.CancelCauseFunc
	parts  []Lock
}

// acquire takes names; what it has taken when it fails are the parts.
func (a *allLock) acquire(ctx context.Context, l Locker, names []string, opts []Option) error {
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

// Name implements Lock.
func (a *allLock) Name() string { return a.name }

// Context implements Lock.
func (a *allLock) Context() context.Context { return a.ctx }

// Release releases every part, and joins what they say.
func (a *allLock) Release(ctx context.Context) error {
	a.cancel(ErrReleased)
	return errors.Join(a.release(ctx)...)
}

func (a *allLock) release(ctx context.Context) []error {
	return together(len(a.parts), func(i int) error { return a.parts[i].Release(ctx) })
}

// try takes names if all are free, and reports whether they were.
func (a *allLock) try(ctx context.Context, l Locker, names []string, opts []Option) bool {
	rest := &allLock{parts: make([]Lock, len(names))}
	group := newGroup(len(names))
	errs := together(len(names), func(i int) (err error) {
		m := &member{group: group}
		defer m.end()
		meet := func(o *Options) { o.Meet = m.meet }
		rest.parts[i], err = l.TryAcquire(ctx, names[i], slices.Concat(opts, []Option{meet})...)
		return err
	})
	if errors.Join(errs...) == nil {
		a.parts = append(a.parts, rest.parts...)
		return true
	}
	taken := 0
	for i, err := range errs {
		if err == nil {
			rest.parts[taken] = rest.parts[i]
			taken++
		}
	}
	rest.parts = rest.parts[:taken]
	rest.release(ctx) // what is not given back is waited for
	return false
}

// wait takes one name after the other.
func (a *allLock) wait(ctx context.Context, l Locker, names []string, opts []Option) error {
	for _, name := range names {
		part, err := l.Acquire(ctx, name, opts...)
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
	errs := a.release(ctx)
	return errors.Join(slices.DeleteFunc(errs, func(err error) bool { return errors.Is(err, ErrLost) || errors.Is(err, ErrExpired) })...)
}
