package workload

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// The troubles, by the time since Run began.
const (
	Taken   = 45 * time.Second               // somebody takes the leader's lock
	Blocked = 90 * time.Second               // nobody can write to the database
	Stuck   = 2 * time.Minute                // deploy-1 begins to wait, in vain
	GaveUp  = 8*time.Minute + 15*time.Second // deploy-1 waits no more
)

// blockedFor is longer than the TTL of the leases less what their holders keep as a margin.
const blockedFor = 14 * time.Second

func (w *Workload) haveTroubles(ctx context.Context, tell func(string)) {
	began := time.Now()
	var all sync.WaitGroup
	defer all.Wait()
	for _, trouble := range []struct {
		at   time.Duration
		says string
		has  func(context.Context) error
	}{
		{Taken, "the leader's lock is released by force", w.take},
		{Blocked, "the database is blocked for " + blockedFor.String(), w.block},
		{Stuck, "a lock is held that deploy-1 waits for", w.stick},
		{GaveUp, "deploy-1 waits no more", func(context.Context) error { return nil }},
	} {
		if !wait(ctx, trouble.at-time.Since(began)) {
			return
		}
		tell(trouble.says)
		all.Go(func() {
			if err := trouble.has(ctx); err != nil && ctx.Err() == nil {
				tell(fmt.Sprintf("%s: %v", trouble.says, err))
			}
		})
	}
}

// stick has web-1 hold a lock that deploy-1 waits for, until that waits no more.
func (w *Workload) stick(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, GaveUp-Stuck)
	defer cancel()
	lock, err := w.machines[0].locker.Acquire(ctx, "release")
	if err != nil {
		return err
	}
	_, err = w.machines[2].locker.Acquire(ctx, "release")
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	return errors.Join(err, lock.Release(ctx))
}

func (w *Workload) take(ctx context.Context) error {
	_, err := w.machines[2].locker.ForceRelease(ctx, "leader")
	return err
}

// block begins a transaction that writes.
func (w *Workload) block(ctx context.Context) error {
	conn, err := w.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "PRAGMA busy_timeout = 5000"); err != nil {
		return err
	}
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	wait(ctx, blockedFor)
	_, err = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	return err
}
