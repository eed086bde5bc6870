package main

import (
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/pg"
)

// contains checks that a text for people contains all these parts, with any white space between the columns.
func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), part) {
			t.Errorf("it does not say %q:\n%s", part, text)
		}
	}
}

func TestShowSaysAllAboutALease(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db testPlace) {
		e := on(t, db.url)
		lease := []string{"show", "--kind", "lease"}
		same(t, listed(t, e, append(lease, "x")...), jsonEntry{Name: "x", Kind: kindLease, State: stateFree})
		contains(t, call(t, e, 0, nil, append(lease, "x")...), "name x lease free")

		p := held(t, e, "x")
		same(t, listed(t, e, append(lease, "x")...), leaseOf(t, p, "x"))
		contains(t, call(t, e, 0, nil, append(lease, "x")...), "lease held token 1 owner sqllock run sh host/pid", " ago)", "left unless it is renewed")
		same(t, listed(t, e, append(lease, "x ")...), jsonEntry{Name: "x ", Kind: kindLease, State: stateFree})
		p.letGo()
		same(t, listed(t, e, append(lease, "x")...), jsonEntry{Name: "x", Kind: kindLease, State: stateFree, Token: 1})
	})
}

func TestShowHasAllHoldersAndTheMetadata(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db testPlace) {
		e := on(t, db.url)
		l, err := leasetable.FromDB(db.DB.DB, leasetable.WithOwner("it"), leasetable.WithTTL(time.Hour))
		must(t, err)
		t.Cleanup(func() { _ = l.Close() })
		take := func(name string, opt sqllock.Option) {
			_, err := l.TryAcquire(t.Context(), name, opt)
			must(t, err)
		}
		take("pool", leasetable.WithLimit(3))
		take("pool", leasetable.WithLimit(3))
		take("readers", leasetable.WithShared())
		take("noted", leasetable.WithMetadata("\x1b[2Jrow 7\xff"))

		kind := []string{"show", "--kind", "lease"}
		got := listed(t, e, append(kind, "pool")...)
		if len(got) != 2 || got[0].Token != 1 || got[1].Token != 2 || got[0].Limit != 3 || got[1].Owner != "it" || got[0].Shared {
			t.Errorf("a limited lease: %+v", got)
		}
		contains(t, call(t, e, 0, nil, append(kind, "pool")...), "lease held, limit 3 token 1", "lease held, limit 3 token 2")
		contains(t, call(t, e, 0, nil, append(kind, "readers")...), "lease held, shared token 1")
		contains(t, call(t, e, 0, nil, append(kind, "noted")...), `metadata "\x1b[2Jrow 7\xff"`)
		if got := listed(t, e, append(kind, "noted")...); len(got) != 1 || string(got[0].MetadataBytes) != "\x1b[2Jrow 7\xff" {
			t.Errorf("a lease with metadata: %+v", got)
		}
		if got := listed(t, e, "ls", "--kind", "lease"); len(got) != 4 {
			t.Errorf("the list has not every holder: %+v", got)
		}
	})
}

func TestShowSaysWhoHoldsASessionLock(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db testPlace) {
		e := on(t, db.url)
		held(t, e, "--kind", "session", "x")
		contains(t, call(t, e, 0, []string{"sqllock schema apply"}, "show", "x"), "name x session held", "host/pid", "on server")
		call(t, e, 0, nil, "schema", "apply")
		got := listed(t, e, "show", "x")
		if len(got) != 2 || got[0].State != stateFree || got[1].State != stateHeld || got[1].Session == 0 || got[1].ServerName == "" {
			t.Errorf("the answer is %+v", got)
		}
		got = listed(t, e, "show", "--kind", "session", "y")
		if len(got) != 1 || got[0].State != stateFree || got[0].Name != "y" {
			t.Errorf("of a free lock the answer is %+v", got)
		}
	})
}

func TestShowHasAllWhoShareASessionLock(t *testing.T) {
	t.Parallel()
	db := servers["PostgreSQL"](t)
	for range 2 {
		l, err := pg.FromDB(db.DB.DB)
		must(t, err)
		t.Cleanup(func() { _ = l.Close() })
		_, err = l.TryAcquire(t.Context(), "x", pg.WithShared())
		must(t, err)
	}
	got := listed(t, on(t, db.DSN), "show", "--kind", "session", "x")
	if len(got) != 2 || !got[0].Shared || !got[1].Shared || got[0].Session == got[1].Session {
		t.Errorf("the answer is %+v", got)
	}
}
