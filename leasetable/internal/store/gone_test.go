package store_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/memory"
	"github.com/sqllock/sqllock/leasetable/internal/store"
	"github.com/sqllock/sqllock/sqltest"
)

// A read that came from a replica may have shown a name without the row of its lease. I9, I33.
func TestWhatBelievesALeaseGoneLooksForItsRow(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, kind memory.Kind, db *sqltest.Database) {
		server, err := openStore(db, dialect(t, db))
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		followsOnlyTheDead(t, "on the server", server)
		followsOnlyTheDead(t, "in memory", memory.NewServer(kind).Store())
	})
}

func followsOnlyTheDead(t *testing.T, where string, s store.Store) {
	t.Helper()
	live, mine, other := bytes.Repeat([]byte{1}, 16), bytes.Repeat([]byte{2}, 16), bytes.Repeat([]byte{3}, 16)
	for _, id := range [][]byte{live, mine} {
		if _, err := s.OpenLease(t.Context(), store.LeaseRow{ID: id, TTL: time.Hour}, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a", "b"} {
		got, err := s.Acquire(t.Context(), &store.Request{Name: name, ID: live, Metadata: []byte{}})
		if err == nil && got.Token == 0 {
			got.Token, err = s.Insert(t.Context(), &store.Request{Name: name, ID: live, Metadata: []byte{}})
		}
		if err != nil || got.Token != 1 {
			t.Fatalf("%s: %s has token %d, %v", where, name, got.Token, err)
		}
	}
	if token, err := s.AcquirePermit(t.Context(), "c", store.State{}, live, 1); err != nil || token != 1 {
		t.Fatalf("%s: c has token %d, %v", where, token, err)
	}
	follow := func() (over, permit int64, cleared bool) {
		t.Helper()
		over, err := s.Takeover(t.Context(), &store.Request{Name: "a", ID: mine, Metadata: []byte{}}, live)
		if err != nil {
			t.Error(err)
		}
		permit, err = s.AcquirePermit(t.Context(), "b", store.State{Token: 1, LeaseID: live}, other, 1)
		if err != nil {
			t.Error(err)
		}
		cleared, err = s.ClearPermit(t.Context(), "c", store.State{Token: 1, LeaseID: live})
		if err != nil {
			t.Error(err)
		}
		return over, permit, cleared
	}
	if over, permit, cleared := follow(); over != 0 || permit != 0 || cleared {
		t.Errorf("%s, while the lease has its row: a was taken over with token %d, a permit of b taken with %d, that of c cleared %t", where, over, permit, cleared)
	}
	if err := s.EndLease(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	if over, permit, cleared := follow(); over != 2 || permit != 2 || !cleared {
		t.Errorf("%s, when the lease is gone: a was taken over with token %d, a permit of b taken with %d, that of c cleared %t", where, over, permit, cleared)
	}
}
