package lock

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// setNX is what a user would send without a library. It does not wait.
type setNX struct{ *redis.Client }

var freeOwn = redis.NewScript(`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0`)

func openSetNX(_ context.Context, address string) (Client, error) {
	return setNX{redis.NewClient(&redis.Options{Addr: address})}, nil
}

// Acquire implements Client.
func (c setNX) Acquire(ctx context.Context, name string) (Release, error) {
	token := rand.Text()
	err := c.SetArgs(ctx, name, token, redis.SetArgs{Mode: "NX", TTL: TTL}).Err()
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		n, err := freeOwn.Run(ctx, c, []string{name}, token).Int()
		if err == nil && n != 1 {
			err = errRefused
		}
		return err
	}, nil
}

// keep renews a lock until stop is called, as its user has to do who holds it for longer than the TTL: neither library of
// Redis does it. A renewal that fails is tried again.
func keep(renew func(ctx context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		tick := time.NewTicker(TTL / 3)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_ = renew(ctx)
			case <-ctx.Done():
				return
			}
		}
	}()
	return cancel
}

// redisLock polls every 100 ms, as the retry strategies in its documentation do.
type redisLock struct {
	*redis.Client
	locks *redislock.Client
}

func openRedislock(_ context.Context, address string) (Client, error) {
	c := redis.NewClient(&redis.Options{Addr: address})
	return redisLock{c, redislock.New(c)}, nil
}

// Acquire implements Client. Obtain gives up after the TTL, and is repeated.
func (c redisLock) Acquire(ctx context.Context, name string) (Release, error) {
	for {
		lock, err := c.locks.Obtain(ctx, name, TTL, &redislock.Options{RetryStrategy: redislock.LinearBackoff(100 * time.Millisecond)})
		if err == nil {
			stop := keep(func(ctx context.Context) error { return lock.Refresh(ctx, TTL, nil) })
			return func(ctx context.Context) error { stop(); return lock.Release(ctx) }, nil
		}
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, redislock.ErrNotObtained) {
			return nil, err
		}
	}
}

// redSync polls after 50 to 250 ms, which is its default.
type redSync struct {
	*redis.Client
	locks *redsync.Redsync
}

func openRedsync(_ context.Context, address string) (Client, error) {
	c := redis.NewClient(&redis.Options{Addr: address})
	return redSync{c, redsync.New(goredis.NewPool(c))}, nil
}

// Acquire implements Client. A mutex gives up after 32 tries, and another one is made.
func (c redSync) Acquire(ctx context.Context, name string) (Release, error) {
	for {
		m := c.locks.NewMutex(name, redsync.WithExpiry(TTL))
		err := m.LockContext(ctx)
		if err == nil {
			stop := keep(func(ctx context.Context) error { _, err := m.ExtendContext(ctx); return err })
			return func(ctx context.Context) error {
				stop()
				ok, err := m.UnlockContext(ctx)
				if err == nil && !ok {
					err = errRefused
				}
				return err
			}, nil
		}
		var taken *redsync.ErrTaken
		if ctx.Err() != nil || !errors.As(err, &taken) && !errors.Is(err, redsync.ErrFailed) {
			return nil, err
		}
	}
}
