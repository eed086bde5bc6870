//go:build unix

package history

import (
	"context"
	"errors"
	"time"

	"github.com/sqllock/sqllock"
)

// Mover is a Locker whose locks can be extended and handed over: each lock has the methods Extend, Export, Token and
// Remaining of leasetable.Lease.
type Mover interface {
	sqllock.Locker
	Adopt(ctx context.Context, ticket string) (sqllock.Lock, error)
	Highest(ctx context.Context, name string) (token int64, err error) // returns the highest token of name
}

var errMistaken = errors.New("nobody else had the lock")

// release returns errMistaken if Release says that the lock was lost before it can have expired, although nobody has
// acquired it since.
func (c *client) release(ctx context.Context) error {
	mover, ok := c.locker.(Mover)
	if !ok {
		return c.lock.Release(ctx)
	}
	lease := c.lock.(interface {
		Remaining() time.Duration
		Token() int64
	})
	sure := time.Now().Add(lease.Remaining())
	err := c.lock.Release(ctx)
	if !errors.Is(err, sqllock.ErrLost) || time.Now().After(sure) {
		return err
	}
	if token, otherwise := mover.Highest(ctx, c.lock.Name()); otherwise != nil || token > lease.Token() {
		return err
	}
	return errMistaken
}

func (c *client) extend(ctx context.Context, text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		return err
	}
	return c.lock.(interface {
		Extend(ctx context.Context, d time.Duration) error
	}).Extend(ctx, d)
}

// export returns an error that matches sqllock.ErrReleased if there is no ticket and the lock is over, whether or not
// it was over before.
func (c *client) export(ctx context.Context, text string) (string, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return "", err
	}
	ticket, err := c.lock.(interface {
		Export(ctx context.Context, valid time.Duration) (string, error)
	}).Export(ctx, d)
	if err != nil && c.lock.Context().Err() != nil {
		err = errors.Join(err, sqllock.ErrReleased)
	}
	return ticket, err
}

// longest returns the longest TTL of a lease. A lease that must last for 3/2 TTL, the longest extension, has a TTL of
// 9/8 · 6/5 of that and up to an eighth more.
func (r *run) longest() time.Duration {
	if r.opts.Moves {
		return 5 * r.opts.TTL / 2
	}
	return r.opts.TTL
}

// another returns a process other than p.
func (r *run) another(p *process, random func(n int) int) *process {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.processes[(p.place+1+random(len(r.processes)-1))%len(r.processes)]
}
