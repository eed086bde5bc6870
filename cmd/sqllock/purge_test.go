package main

import (
	"testing"

	"github.com/sqllock/sqllock/internal/locktest"
)

func TestPurgeDeletesWhatKilledProcessesHaveLeft(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEach(t, func(t *testing.T, db testPlace) {
		e := on(t, db.url)
		dead, live := held(t, e, "--ttl", "1h", "dead"), held(t, e, "--ttl", "1h", "live")
		dead.stop()
		db.expire(t, dead)
		for _, test := range []struct{ want, olderThan string }{{"0", "72h"}, {"1", "24h"}, {"0", "0s"}} {
			out := call(t, e, 0, nil, "purge", "--older-than", test.olderThan)
			if out != "leases deleted: "+test.want+"\n" {
				t.Errorf("older than %s: %q, want %s", test.olderThan, out, test.want)
			}
		}
		same(t, listed(t, e, "ls", "--held", "--kind", "lease"), leaseOf(t, live, "live"))
		same(t, listed(t, e, "ls", "--expired"))
		same(t, listed(t, e, "show", "--kind", "lease", "dead"), jsonEntry{Name: "dead", Kind: kindLease, State: stateFree, Token: 1})
		live.letGo()
	})
}
