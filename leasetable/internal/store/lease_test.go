package store_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable/internal/memory"
	"github.com/sqllock/sqllock/leasetable/internal/store"
	"github.com/sqllock/sqllock/sqltest"
)

// lib/pq has a statement repeated whose answer is lost, and so do proxies. The row is there then, and the next lease has
// another id.
func TestALeaseWhoseOpeningIsRepeatedCanBeTriedAgain(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, kind memory.Kind, db *sqltest.Database) {
		if kind == memory.SQLite {
			return // no answer of a file is lost
		}
		s, err := openStore(db, dialect(t, db))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		row := store.LeaseRow{ID: bytes.Repeat([]byte{1}, 16), TTL: time.Hour}
		if _, err := s.OpenLease(t.Context(), row, time.Minute); err != nil {
			t.Fatal(err)
		}
		if _, err := s.OpenLease(t.Context(), row, time.Minute); !errors.Is(err, store.ErrNoLease) || !sqllock.IsRetryable(err) {
			t.Errorf("once more: %v", err)
		}
	})
}
