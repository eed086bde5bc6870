// Package option holds the options of one acquisition. Users see them as sqllock.Option, whose argument they cannot
// name.
package option

import (
	"context"
	"time"
)

// Options is the result of a list of sqllock.Option.
type Options struct {
	TTL  time.Duration  // 0: the Locker's own
	Wait *time.Duration // the longest wait; nil: as long as the context lives

	OneKey string // the option that makes all names the same lock; empty: there is none

	Probe bool   // after an error another call tries again: event.Failed is not reported
	Whole *Whole // the acquisition of several names that this one is a part of; nil: none

	backends []backend
}

// backend has the options of one backend's package.
type backend struct {
	option string // the first option of it that was given, as "leasetable.WithLimit"
	says   any    // a pointer to that package's own type
}

// Of makes an option of the backend whose options are a C. name is the option's name, for the errors of other backends.
func Of[C any](name string, set func(*C)) func(*Options) {
	return func(o *Options) {
		for _, b := range o.backends {
			if c, ok := b.says.(*C); ok {
				set(c)
				return
			}
		}
		c := new(C)
		set(c)
		o.backends = append(o.backends, backend{option: name, says: c})
	}
}

// Read applies opts. It returns the common options, the options of the backend whose options are a C, and the name of
// an option of another backend, if there is one.
func Read[C any, O ~func(*Options)](opts []O) (o Options, c C, foreign string) {
	for _, opt := range opts {
		opt(&o)
	}
	for _, b := range o.backends {
		if own, ok := b.says.(*C); ok {
			c = *own
		} else if foreign == "" {
			foreign = b.option
		}
	}
	return o, c, foreign
}

type givesBack struct{}

// GivingBack returns a context for the release of a lock that its caller does not get after all: the name is free at once,
// whatever minimum hold it has.
func GivingBack(ctx context.Context) context.Context {
	return context.WithValue(ctx, givesBack{}, true)
}

// GivesBack reports whether ctx is one of GivingBack.
func GivesBack(ctx context.Context) bool { return ctx.Value(givesBack{}) != nil }
