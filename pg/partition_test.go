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

func TestPartitions(t *testing.T) {
	t.Parallel()
	locktest.Partitions(t, func(t *testing.T) locktest.Parted {
		db := sqltest.Postgres(t)
		return locktest.Parted{
			Server: parse(t, db.DSN).Host,
			NewLocker: func(t *testing.T, address string) locktest.Locker {
				t.Helper()
				return closing(t)(pg.New(at(t, db, address), pg.WithSessionTTL(2*time.Second)))
			},
			Waiting:  func(t *testing.T, name string) int { t.Helper(); return waitersFor(t, db, name) },
			Sessions: func(t *testing.T) int { t.Helper(); return sessionsOn(t, db) },
		}
	})
}

func TestProcessesThatAreCutOff(t *testing.T) {
	t.Parallel()
	const ttl = 2 * time.Second
	locktest.Remotes(t, func(t *testing.T) locktest.Remote {
		db := sqltest.Postgres(t)
		return locktest.Remote{
			Server:    parse(t, db.DSN).Host,
			TTL:       ttl,
			NewLocker: func(t *testing.T) locktest.Locker { t.Helper(); return newLocker(t, db) },
			Child: func(t *testing.T, address string, job locktest.Job) []string {
				t.Helper()
				return childEnv(at(t, db, address), ttl, string(job))
			},
			Waiting: func(t *testing.T, name string) int { t.Helper(); return waitersFor(t, db, name) },
		}
	})
}

// Where there is no idle_session_timeout, TCP has to notice that the other end is gone. That takes
// a server whose own connections are cut, without a relay in between.
func TestProcessesThatAreCutOffFromAnOldServer(t *testing.T) {
	t.Parallel()
	const ttl = 2 * time.Second
	srv := sqltest.Start(t, sqltest.EnginePostgres, "listen_addresses=*")
	if !strings.Contains(srv.Database(t).Server, "programs") {
		t.Skip("a server in a container listens on an address of its own")
	}
	locktest.Remotes(t, func(t *testing.T) locktest.Remote {
		db := srv.Database(t)
		statement(t, db, `DO $$ BEGIN EXECUTE format('COPY (SELECT ''host all all 198.18.0.0/15 trust'') TO PROGRAM %L',
			'cat >> ' || current_setting('hba_file')); END $$`)
		statement(t, db, "SELECT pg_reload_conf()")
		return locktest.Remote{
			Server:    parse(t, db.DSN).Host,
			Direct:    true,
			TTL:       ttl,
			NewLocker: func(t *testing.T) locktest.Locker { t.Helper(); return newLocker(t, db) },
			Child: func(t *testing.T, address string, job locktest.Job) []string {
				t.Helper()
				return append(childEnv(at(t, db, address), ttl, string(job)), childOld+"=yes")
			},
			Waiting: func(t *testing.T, name string) int { t.Helper(); return waitersFor(t, db, name) },
		}
	})
}

// The server ends a session that waits, and is silent, long before the session TTL: also when it was
// granted the lock just then, and the answer did not arrive.
func TestAWaiterThatIsCutOffAsItIsGrantedTheLockIsSoonOutOfTheWay(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	cable := locktest.NewCable(t, "127.0.0.1", parse(t, db.DSN).Host)
	cutOff := closing(t)(pg.New(at(t, db, cable.Address()), pg.WithSessionTTL(time.Hour)))
	lock := mustTry(t, newLocker(t, db), "it")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan outcome, 1)
	go func() {
		lock, err := cutOff.Acquire(ctx, "it")
		ended <- outcome{lock, err}
	}()
	eventually(t, "it waits", func() bool { return waitersFor(t, db, "it") == 1 })
	cable.Cut()
	mustRelease(t, lock)
	mustRelease(t, mustAcquire(t, newLocker(t, db), "it")) // in much less than the TTL
	cancel()
	if out := <-ended; !errors.Is(out.err, context.Canceled) {
		t.Errorf("the waiter that was cut off: %v, %v", out.lock, out.err)
	}
}

// Callers who have left a server that does not answer are no locks.
func TestCallersWhoHaveLeftDoNotFillTheirSession(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	cable := locktest.NewCable(t, "127.0.0.1", parse(t, db.DSN).Host)
	l := closing(t)(pg.New(at(t, db, cable.Address()), pg.WithMaxConnections(2))) // one of them for waits
	mustRelease(t, mustTry(t, l, "it"))
	cable.Cut()
	for range 2 { // together more than a session holds, but not at any moment
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
	cable.Heal()
	if out := <-next; out.err != nil {
		t.Error(out.err)
	}
}

// at is the DSN of db with another address.
func at(t *testing.T, db *sqltest.Database, address string) string {
	t.Helper()
	u := parse(t, db.DSN)
	u.Host = address
	return u.String()
}

func parse(t *testing.T, dsn string) *url.URL {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
