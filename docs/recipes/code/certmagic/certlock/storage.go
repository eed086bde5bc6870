// Package certlock locks the storage of certmagic.
package certlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
)

// Storage is a certmagic.Storage whose locks are leases. The certificates are where the Storage in it keeps them.
type Storage struct {
	certmagic.Storage
	leases *leasetable.Locker

	mu   sync.Mutex
	held map[string][]*leasetable.Lease // guarded by mu; a second one of a name only if the first was lost
}

var (
	_ certmagic.Storage          = (*Storage)(nil)
	_ certmagic.TryLocker        = (*Storage)(nil)
	_ certmagic.LockLeaseRenewer = (*Storage)(nil)
)

// New returns a Storage: certmagic.Default.Storage = certlock.New(storage, leases).
func New(storage certmagic.Storage, leases *leasetable.Locker) *Storage {
	return &Storage{Storage: storage, leases: leases, held: make(map[string][]*leasetable.Lease)}
}

// Lock implements certmagic.Locker.
func (s *Storage) Lock(ctx context.Context, name string) error {
	lease, err := s.leases.Acquire(ctx, "certmagic/"+name)
	if err == nil {
		s.add(name, lease)
	}
	return err
}

// TryLock implements certmagic.TryLocker.
func (s *Storage) TryLock(ctx context.Context, name string) (bool, error) {
	lease, err := s.leases.TryAcquire(ctx, "certmagic/"+name)
	if errors.Is(err, sqllock.ErrHeld) {
		return false, nil
	}
	if err == nil {
		s.add(name, lease)
	}
	return err == nil, err
}

// Unlock implements certmagic.Locker. Its error says that the lock was lost before, or may last until the TTL is over. It
// releases the oldest lease, so that an Unlock after a loss does not release the lock of another goroutine.
func (s *Storage) Unlock(ctx context.Context, name string) error {
	leases := s.leasesOf(name)
	if len(leases) == 0 {
		return fmt.Errorf("%s is not locked", name)
	}
	s.replace(name, leases[0], nil)
	return leases[0].Release(ctx)
}

// RenewLockLease implements certmagic.LockLeaseRenewer. certmagic calls it before each attempt to get a certificate. A
// lease renews itself, so the duration does not matter. If the lock was lost, RenewLockLease acquires it again. If
// another machine has it, the attempt fails, and a later one finds the certificate that the other machine has got.
func (s *Storage) RenewLockLease(ctx context.Context, name string, _ time.Duration) error {
	var lost *leasetable.Lease
	for _, lost = range s.leasesOf(name) {
		if err := lost.Verify(ctx); !errors.Is(err, sqllock.ErrLost) && !errors.Is(err, sqllock.ErrExpired) {
			return err // nil: it is held, by whichever goroutine of this process
		}
	}
	if lost == nil {
		return fmt.Errorf("%s is not locked", name)
	}
	lease, err := s.leases.TryAcquire(ctx, "certmagic/"+name)
	if err == nil && !s.replace(name, lost, lease) { // Unlock was called meanwhile
		return lease.Release(ctx)
	}
	return err
}

func (s *Storage) add(name string, lease *leasetable.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[name] = append(s.held[name], lease)
}

// leasesOf returns the leases of a name, the oldest first.
func (s *Storage) leasesOf(name string) []*leasetable.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.held[name])
}

// replace puts a lease, or nothing, in the place of another one. It reports whether that was there.
func (s *Storage) replace(name string, old, lease *leasetable.Lease) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.held[name], old)
	switch {
	case i < 0:
		return false
	case lease != nil:
		s.held[name][i] = lease
	case len(s.held[name]) == 1:
		delete(s.held, name)
	default:
		s.held[name] = slices.Delete(s.held[name], i, i+1)
	}
	return true
}
