package lock

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

func dialEtcd(address string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints: []string{address}, DialTimeout: 5 * time.Second, Logger: zap.NewNop(),
	})
}

// etcdTxn takes a key that does not exist. It does not wait.
type etcdTxn struct{ *clientv3.Client }

func openEtcdTxn(_ context.Context, address string) (Client, error) {
	c, err := dialEtcd(address)
	return etcdTxn{c}, err
}

// Acquire implements Client.
func (c etcdTxn) Acquire(ctx context.Context, name string) (Release, error) {
	key := "txn/" + name
	got, err := c.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).Then(clientv3.OpPut(key, "")).Commit()
	if err == nil && !got.Succeeded {
		err = errRefused
	}
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		_, err := c.Delete(ctx, key)
		return err
	}, nil
}

// etcdMutex has a session for each caller, as two mutexes of one session do not exclude each other.
type etcdMutex struct {
	*clientv3.Client
	sessions *idle[*concurrency.Session]
}

func openEtcdMutex(_ context.Context, address string) (Client, error) {
	c, err := dialEtcd(address)
	if err != nil {
		return nil, err
	}
	return etcdMutex{c, &idle[*concurrency.Session]{
		open: func(context.Context) (*concurrency.Session, error) {
			return concurrency.NewSession(c, concurrency.WithTTL(int(TTL/time.Second)))
		},
		close: (*concurrency.Session).Close,
	}}, nil
}

// Acquire implements Client.
func (c etcdMutex) Acquire(ctx context.Context, name string) (Release, error) {
	session, err := c.sessions.take(ctx)
	if err != nil {
		return nil, err
	}
	m := concurrency.NewMutex(session, "mutex/"+name)
	if err := m.Lock(ctx); err != nil {
		return nil, c.sessions.give(session, err)
	}
	return func(ctx context.Context) error { return c.sessions.give(session, m.Unlock(ctx)) }, nil
}

// Close implements Client.
func (c etcdMutex) Close() error { return errors.Join(c.sessions.Close(), c.Client.Close()) }
