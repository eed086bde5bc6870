package pg

import (
	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/option"
	"github.com/sqllock/sqllock/internal/session"
)

// choice has this package's options for one lock.
type choice struct {
	key    *key // nil: the key of the name
	shared bool
}

// WithShared acquires a share of the lock: any number of holders have a share at the same time, and nobody has the
// exclusive lock meanwhile. A share cannot be acquired while a Locker waits in the server's queue for the exclusive lock;
// one that has no connection left for waits, and polls, keeps nobody out. A holder of a share that also waits for the
// exclusive lock deadlocks with itself: release the share first.
//
// The goroutines of one Locker have one share together on the server.
func WithShared() sqllock.Option {
	return option.Of("pg.WithShared", func(c *choice) { c.shared = true })
}

// WithKey takes the lock pg_advisory_lock(n) instead of the name's, to share it with another program; the name is then
// only a label. Every function that takes the name of a lock accepts WithKey; sqllock.AcquireAll of several names does not.
func WithKey(n int64) sqllock.Option { return withKey("pg.WithKey", key{n: n}) }

// WithPair takes the lock pg_advisory_lock(a, b) instead of the name's; see [WithKey]. Pairs and single keys do not
// exclude each other.
func WithPair(a, b int32) sqllock.Option {
	return withKey("pg.WithPair", key{n: int64(a)<<32 | int64(uint32(b)), pair: true})
}

func withKey(name string, k key) sqllock.Option {
	set := option.Of(name, func(c *choice) { c.key = &k })
	return func(o *option.Options) {
		o.OneKey = name
		set(o)
	}
}

// want makes a Want from a name and options.
func want(op, name string, opts []sqllock.Option) (w session.Want[key], err error) {
	c, o, err := session.CheckArgs[choice](op, name, opts)
	if err != nil {
		return w, err
	}
	w = session.Want[key]{Name: name, Key: key{n: Key(name)}, Shared: c.shared, Wait: o.Wait, Probe: o.Probe, Whole: o.Whole}
	if c.key != nil {
		w.Key = *c.key
	}
	return w, nil
}
