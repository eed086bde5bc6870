package leasetable_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/memory"
)

// exporting returns a channel with the error of an Export.
func exporting(t *testing.T, export func(ctx context.Context, valid time.Duration) (string, error)) <-chan error {
	t.Helper()
	exported := make(chan error, 1)
	go func() {
		ticket, err := export(t.Context(), 24*time.Hour)
		if ticket != "" {
			t.Errorf("a ticket with the error %v", err)
		}
		exported <- err
	}()
	return exported
}

// The statement that moves the name is committed, and Close ends it before its answer comes. I28.
func TestCloseLeavesNoNameOnATicketThatNobodyGot(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Postgres)
		s := &scripted{Store: server.Store()}
		l, other := keep(t, s), keep(t, server.Store())
		s.move = func(ctx context.Context, name string, token int64, from, to []byte) (bool, error) {
			_, err := s.Store.Move(ctx, name, token, from, to)
			<-ctx.Done()
			return false, errors.Join(errCut, err)
		}
		exported := exporting(t, take(t, l, "x").Export)
		synctest.Wait() // the name is on the lease of the ticket
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := <-exported; !errors.Is(err, sqllock.ErrClosed) {
			t.Errorf("Export: %v", err)
		}
		release(t, take(t, other, "x"))
	})
}

// The name was moved, no answer came, and the row of the ticket's lease cannot be deleted at first. I28.
func TestCloseDeletesTheLeaseOfATicketThatNobodyGot(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Postgres)
		s := &scripted{Store: server.Store()}
		l, other := keep(t, s), keep(t, server.Store())
		s.move = func(ctx context.Context, name string, token int64, from, to []byte) (bool, error) {
			_, err := s.Store.Move(ctx, name, token, from, to)
			return false, errors.Join(errCut, err)
		}
		failed := make(chan struct{})
		s.expire = func(context.Context, []byte, int64) (bool, error) {
			s.expire = nil
			close(failed)
			return false, &dberr.Error{Err: errCut, Transient: true}
		}
		if err := <-exporting(t, take(t, l, "x").Export); err == nil || errors.Is(err, sqllock.ErrClosed) {
			t.Errorf("Export: %v", err)
		}
		<-failed
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		release(t, take(t, other, "x"))
	})
}
