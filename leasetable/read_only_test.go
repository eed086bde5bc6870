package leasetable_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/memory"
)

// demoted is a database whose server becomes read-only. New connections lead to the new primary.
type demoted struct {
	*scripted
	left atomic.Bool
}

// Reconnect implements store.Server.
func (d *demoted) Reconnect() { d.left.Store(true) }

func TestARenewalLeavesAServerThatBecameReadOnly(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{Store: memory.NewServer(memory.MySQL).Store()}
		d := &demoted{scripted: s}
		s.renew = func(ctx context.Context, id []byte) (bool, int64, error) {
			if !d.left.Load() {
				return false, 0, &dberr.Error{Err: sqllock.ErrReadOnly, OutcomeKnown: true}
			}
			return s.Store.Renew(ctx, id)
		}
		lock := take(t, keep(t, d, leasetable.WithTTL(15*time.Second)), "x")
		pass(30 * time.Second)
		release(t, lock)
	})
}

// It leaves it, too, if another error came just before, and again as long as new connections lead there.
func TestARenewalLeavesAServerThatIsReadOnlyAfterAnotherError(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{Store: memory.NewServer(memory.MySQL).Store()}
		d := &demoted{scripted: s}
		reconnects := 0
		broken := false
		s.renew = func(ctx context.Context, id []byte) (bool, int64, error) {
			if d.left.CompareAndSwap(true, false) {
				reconnects++
			}
			switch {
			case !broken:
				broken = true
				return false, 0, errCut
			case reconnects < 3:
				return false, 0, &dberr.Error{Err: sqllock.ErrReadOnly, OutcomeKnown: true}
			}
			return s.Store.Renew(ctx, id)
		}
		lock := take(t, keep(t, d, leasetable.WithTTL(4*time.Second)), "x")
		pass(30 * time.Second)
		release(t, lock)
	})
}
