package pg_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

// Without idle_session_timeout, TCP must notice that the other end is gone. Testing that needs a server whose own
// connections are cut, without a relay in between.
func TestProcessesThatAreCutOffFromAnOldServer(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	if strings.Contains(sqltest.Postgres(t).Server, "docker") {
		t.Skip("a server in a container listens on an address of its own")
	}
	srv := sqltest.Start(t, sqltest.EnginePostgres, sqltest.Setting("listen_addresses", "*"))
	if !strings.Contains(srv.String(), "programs") {
		t.Skip("a server in a container listens on an address of its own")
	}
	db := srv.Database(t)
	statement(t, db, `DO $$ BEGIN EXECUTE format('COPY (SELECT ''host all all 198.18.0.0/15 trust'') TO PROGRAM %L',
		'cat >> ' || current_setting('hba_file')); END $$`)
	statement(t, db, "SELECT pg_reload_conf()")
	locktest.Remotes(t, locktest.Remote{
		Open:   func(t *testing.T) locktest.Database { t.Helper(); return database{srv.Database(t)} },
		Direct: true,
		Env:    []string{childOld + "=yes"},
	})
}

// The server ends a session that waits and is silent long before the session TTL, even if the server has just granted
// it the lock and the response did not arrive.
func TestAWaiterThatIsCutOffAsItIsGrantedTheLockIsSoonOutOfTheWay(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqltest.Postgres(t)
	locktest.NeedSessionTimeout(t, db.DB.DB)
	network := db.Network(t)
	cutOff := closing(t)(pg.New(database{db}.DSN(t, locktest.Access{Address: network.Address()}), pg.WithSessionTTL(time.Hour)))
	lock := mustTry(t, newLocker(t, db), "it")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan outcome, 1)
	go func() {
		lock, err := cutOff.Acquire(ctx, "it")
		ended <- outcome{lock, err}
	}()
	eventually(t, "it waits", func() bool { return waitersFor(t, db, "it") == 1 })
	network.Cut()
	mustRelease(t, lock)
	mustRelease(t, mustAcquire(t, newLocker(t, db), "it")) // in much less than the TTL
	cancel()
	if out := <-ended; !errors.Is(out.err, context.Canceled) {
		t.Errorf("the waiter that was cut off: %v, %v", out.lock, out.err)
	}
}

// Callers that have given up on a server that does not answer do not count as locks. I44.
func TestCallersWhoHaveLeftDoNotFillTheirSession(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqltest.Postgres(t)
	network := db.Network(t)
	// One of the two connections is for waits.
	l := closing(t)(pg.New(database{db}.DSN(t, locktest.Access{Address: network.Address()}), pg.WithMaxConnections(2)))
	mustRelease(t, mustTry(t, l, "it"))
	network.Cut()
	for range 2 { // in total more than a session holds, but not at any moment
		var callers sync.WaitGroup
		for i := range 400 {
			callers.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
				defer cancel()
				if _, err := l.TryAcquire(ctx, fmt.Sprint(i)); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			})
		}
		callers.Wait()
	}
	next := make(chan outcome, 1)
	go func() {
		lock, err := l.TryAcquire(t.Context(), "it")
		next <- outcome{lock, err}
	}()
	network.Heal()
	if out := <-next; out.err != nil {
		t.Error(out.err)
	}
}

func parse(t *testing.T, dsn string) *url.URL {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
