// Package option holds what the options of one acquisition say. Users see them as sqllock.Option, whose argument they cannot name.
package option

import "time"

// Options is what a list of sqllock.Option sets.
type Options struct {
	TTL  time.Duration  // 0: the Locker's own
	Wait *time.Duration // how long to wait at most; nil: as long as the context lives

	Probe bool // a name that is held is asked for again by another call; see event.Failed

	backends []backend
}

// backend is what the options of one backend's package say.
type backend struct {
	option string // the first of them that was given, as "leasetable.WithLimit"
	says   any    // a pointer to that package's own type
}

// Of makes an option of the backend whose options are a C. The option's name is for errors of other backends.
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

// Read applies opts. It returns what those say that are of the backend whose options are a C, and the name of an option that is of
// another one, if there is any.
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
