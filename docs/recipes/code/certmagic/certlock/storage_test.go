package certlock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/docs/recipes/code/certmagic/certlock"
	"github.com/sqllock/sqllock/internal/adaptertest"
)

const (
	domain = "example.com"
	lock   = "issue_cert_" + domain // as certmagic calls it
)

// storages returns the storages of two machines that share the folder of certificates.
func storages(t *testing.T, p adaptertest.Place) (one, other *certlock.Storage) {
	t.Helper()
	folder := t.TempDir()
	open := func() *certlock.Storage {
		return certlock.New(&certmagic.FileStorage{Path: folder}, p.Leases(t))
	}
	return open(), open()
}

func TestOneMachineGetsTheCertificate(t *testing.T) {
	t.Parallel()
	adaptertest.Leases(t, func(t *testing.T, p adaptertest.Place) {
		one, other := storages(t, p)
		ca := &authority{issuing: func(ctx context.Context) {
			for _, s := range []*certlock.Storage{one, other} {
				if locked, err := s.TryLock(ctx, lock); locked || err != nil {
					t.Errorf("while a certificate is issued, TryLock: %v, %v", locked, err)
				}
			}
		}}
		var both sync.WaitGroup
		for _, s := range []*certlock.Storage{one, other} {
			machine := newMachine(t, s, ca)
			both.Go(func() {
				if err := machine.ObtainCertSync(t.Context(), domain); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		if n := ca.issued.Load(); n != 1 {
			t.Errorf("%d certificates were issued; want 1", n)
		}
	})
}

// newMachine returns the certmagic of a process.
func newMachine(t *testing.T, s certmagic.Storage, ca certmagic.Issuer) *certmagic.Config {
	t.Helper()
	var config *certmagic.Config
	cache := certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return config, nil },
		Logger:           zap.NewNop(),
	})
	t.Cleanup(cache.Stop)
	config = certmagic.New(cache, certmagic.Config{Storage: s, Issuers: []certmagic.Issuer{ca}, Logger: zap.NewNop()})
	return config
}

func TestALostLockIsAcquiredAgainUnlessItIsHeld(t *testing.T) {
	t.Parallel()
	adaptertest.Leases(t, func(t *testing.T, p adaptertest.Place) {
		one, other := storages(t, p)
		operator := p.Leases(t)
		lose := func() {
			t.Helper()
			if _, err := operator.ForceRelease(t.Context(), "certmagic/"+lock); err != nil {
				t.Fatal(err)
			}
		}
		must(t, one.Lock(t.Context(), lock))
		must(t, one.RenewLockLease(t.Context(), lock, time.Minute))

		lose()
		must(t, one.RenewLockLease(t.Context(), lock, time.Minute))
		if locked, err := other.TryLock(t.Context(), lock); locked || err != nil {
			t.Errorf("TryLock of what was acquired again: %v, %v", locked, err)
		}

		lose()
		must(t, other.Lock(t.Context(), lock))
		if err := one.RenewLockLease(t.Context(), lock, time.Minute); !errors.Is(err, sqllock.ErrHeld) {
			t.Errorf("RenewLockLease while another machine has the lock: %v", err)
		}
		if err := one.Unlock(t.Context(), lock); !errors.Is(err, sqllock.ErrLost) {
			t.Errorf("Unlock of a lock that was lost: %v", err)
		}
		if locked, err := one.TryLock(t.Context(), lock); locked || err != nil {
			t.Errorf("TryLock after that: %v, %v", locked, err)
		}
		must(t, other.Unlock(t.Context(), lock))
		must(t, one.Lock(t.Context(), lock))
		must(t, one.Unlock(t.Context(), lock))
	})
}

// The Unlock of a goroutine that lost its lock does not release the lock of another goroutine, which can renew it before.
func TestUnlockAfterALossLeavesTheNextLockAlone(t *testing.T) {
	t.Parallel()
	adaptertest.Leases(t, func(t *testing.T, p adaptertest.Place) {
		one, other := storages(t, p)
		must(t, one.Lock(t.Context(), lock))
		if _, err := p.Leases(t).ForceRelease(t.Context(), "certmagic/"+lock); err != nil {
			t.Fatal(err)
		}
		must(t, one.Lock(t.Context(), lock))
		must(t, one.RenewLockLease(t.Context(), lock, time.Minute))
		if err := one.Unlock(t.Context(), lock); !errors.Is(err, sqllock.ErrLost) {
			t.Errorf("the first Unlock: %v", err)
		}
		if locked, err := other.TryLock(t.Context(), lock); locked || err != nil {
			t.Errorf("TryLock between the two: %v, %v", locked, err)
		}
		must(t, one.Unlock(t.Context(), lock))
		if one.Unlock(t.Context(), lock) == nil || one.RenewLockLease(t.Context(), lock, time.Minute) == nil {
			t.Error("what is not locked was unlocked, or renewed")
		}
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
