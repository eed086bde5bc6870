package pg

import (
	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/option"
	"github.com/sqllock/sqllock/internal/session"
)

// choice is what this package's options say about one lock.
type choice struct {
	key    *key // nil: the name's
	shared bool
}

// WithShared makes it a share of the lock: any number of holders have a share at the same time,
// and nobody has the lock meanwhile. A share is not to be had while a Locker waits for the lock
// itself. A holder of a share that waits for the lock as well waits for itself: release the share
// first.
//
// The goroutines of one Locker have one share together on the server.
func WithShared() sqllock.Option {
	return option.Of("pg.WithShared", func(c *choice) { c.shared = true })
}

// WithKey takes the lock pg_advisory_lock(n) instead of the name's, to share it with another
// program; the name is for people. It may be given to whatever takes the name of a lock.
func WithKey(n int64) sqllock.Option {
	return option.Of("pg.WithKey", func(c *choice) { c.key = &key{n: n} })
}

// WithPair takes the lock pg_advisory_lock(a, b) instead of the name's; see [WithKey]. Pairs and
// single keys do not exclude each other.
func WithPair(a, b int32) sqllock.Option {
	return option.Of("pg.WithPair", func(c *choice) { c.key = &key{n: int64(a)<<32 | int64(uint32(b)), pair: true} })
}

// want makes of a name and options what is asked for.
func want(op, name string, opts []sqllock.Option) (w session.Want[key], err error) {
	c, o, err := session.CheckArgs[choice](op, name, opts)
	if err != nil {
		return w, err
	}
	w = session.Want[key]{Name: name, Key: key{n: Key(name)}, Shared: c.shared, Wait: o.Wait, Probe: o.Probe}
	if c.key != nil {
		w.Key = *c.key
	}
	return w, nil
}
