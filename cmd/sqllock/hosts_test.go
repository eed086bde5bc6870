package main

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/sqltest"
)

// silentHost accepts connections and never answers, like a frozen machine.
func silentHost(t *testing.T) (address string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				_, _ = io.Copy(io.Discard, c)
				_ = c.Close()
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		running.Wait()
	})
	return listener.Addr().String()
}

func TestOneOfSeveralHostsIsFrozen(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqltest.Postgres(t)
	call(t, on(t, db.DSN), 0, nil, "schema", "apply")
	e := on(t, strings.Replace(db.DSN, "@", "@"+silentHost(t)+",", 1))
	for _, kind := range []string{"lease", "session"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			call(t, e, 0, nil, "run", "--kind", kind, "--wait", "20s", "x", "--", "true")
		})
	}
}
