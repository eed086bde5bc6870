package locktest

import (
	"cmp"
	"context"
	"database/sql"
	"log/slog"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
)

// Server is a server of session locks, for [Sessions].
type Server struct {
	// Open creates a database that nobody else uses. It ends with the test.
	Open func(t *testing.T) Database

	Driver             string // the name in database/sql
	LocksPerConnection int
	Slice              time.Duration // about how long a waiter stays in the server's queue at a time
	Malformed          []string      // DSNs with Secret in them that cannot be parsed
}

// Database is a database on such a server.
type Database interface {
	Pool() *sql.DB
	Access(t *testing.T) Access                            // of the database's DSN
	DSN(t *testing.T, other Access) string                 // returns the DSN with these parts replaced
	New(s Settings) (SessionLocker, error)                 // opens a Locker
	Child(dsn string, ttl time.Duration, job Job) []string // the environment that makes the test program a child process

	Waiting(t *testing.T, name string) int  // counts the sessions in the server's queue for a lock or, on MySQL, for any lock
	Locks(t *testing.T) int                 // counts the sessions that wait for any lock and, on PostgreSQL, those that hold one
	Sessions(t *testing.T) int              // counts the connections of Lockers
	Holder(t *testing.T, name string) int64 // returns the session that holds a lock; 0: none
	End(t *testing.T, name string)          // ends the session that holds a lock

	// EndWaits ends the sessions that wait for a lock, or only their statements.
	EndWaits(t *testing.T, name string, sessions bool)
}

// Access has parts of a DSN. In the argument of DSN an empty field stands for the database's own part.
type Access struct{ Address, User, Password, Database string } // the address is host:port

// Settings has the options of a Locker.
type Settings struct {
	DSN         string        // instead of the database's own
	DB          *sql.DB       // instead of a DSN
	TTL         time.Duration // by default it does not end during a test
	Heartbeat   time.Duration // at most a third of the TTL; by default the Locker's own
	Owner       string
	Connections int
	Hook        func(context.Context, sqllock.Event)
	Logger      *slog.Logger
}

// endless is a session TTL that does not end during a test. A lock that is left held is therefore detected, and a loss
// or an acquisition must have another reason than the TTL.
const endless = time.Hour

// SessionTTL returns the session TTL, with its default.
func (s Settings) SessionTTL() time.Duration { return cmp.Or(s.TTL, endless) }

// SessionLocker is a Locker that can also inspect and terminate other holders.
type SessionLocker interface {
	Locker
	Inspect(ctx context.Context, name string, opts ...sqllock.Option) (sqllock.Holder, bool, error)
	Terminate(ctx context.Context, name string, opts ...sqllock.Option) (sqllock.Holder, bool, error)
}

// Sessions tests the common behavior of session locks on every server, in addition to [Exercise]. Each test has a
// database of its own.
func Sessions(t *testing.T, server Server) {
	t.Helper()
	type story struct {
		name string
		run  func(*testing.T, sessions)
	}
	each := func(t *testing.T, stories []story) {
		t.Helper()
		for _, story := range stories {
			t.Run(story.name, func(t *testing.T) {
				t.Parallel()
				story.run(t, sessions{server.Open(t), server})
			})
		}
	}
	each(t, []story{
		{"locks that were free share one connection", shareOneConnection},
		{"a wait has a connection until its lock is released", waitHasConnection},
		{"a pool of one keeps working while locks are held and waited for", poolOfOne},
		{"a lock of another database is another lock", anotherDatabase},
		{"a counter that only the lock guards is exact", func(t *testing.T, s sessions) { Counter(t, s.Pool(), s.locker) }},
		{"errors of connecting tell no password", noPassword},
		{"the holder is known", holderIsKnown},
		{"Terminate frees the lock for a waiter and tells its holder", terminate},
		{"Terminate of a free lock ends nothing", terminateFree},
		{"a Locker does not terminate itself", terminateItself},
		{"a session that is ended is noticed and costs its own locks only", sessionEnds},
		{"the end of a session is told though no heartbeat is due", func(t *testing.T, s sessions) {
			ToldAtOnce(t, s, Settings{})
			ToldAtOnce(t, s, Settings{DB: SmallPool(t, s.server.Driver, s.DSN(t, Access{}))})
		}},
		{"a wait whose session is ended begins again", waitBeginsAgain},
		{"a wait whose statement is ended fails and holds nothing", waitEnds},
	})
	t.Run("on whatever version", func(t *testing.T) {
		t.Parallel()
		OncePerEngine(t)
		t.Run("partitions", func(t *testing.T) {
			t.Parallel()
			partitions(t, server.Open)
		})
		t.Run("a slow network", func(t *testing.T) {
			t.Parallel()
			db := server.Open(t)
			OnSlowNetworks(t, db.Access(t).Address, func(t *testing.T, n *SlowNetwork) {
				far := Settings{DSN: db.DSN(t, Access{Address: n.Address()})}
				SlowLocks(t, open(t, db, far), open(t, db, far), open(t, db, Settings{}))
			})
		})
		t.Run("processes that are cut off", func(t *testing.T) {
			t.Parallel()
			Remotes(t, Remote{Open: server.Open})
		})
		each(t, []story{
			{"a Locker keeps to its limits", limits},
			{"holds as long as a slice of a wait starve nobody", serveAll},
			{"what happens to locks is told", toldEvents},
			{"ten thousand cancels at the grant leave nothing", races},
			{"a malformed DSN is not repeated", malformedDSN},
			{"a dead context does not connect", doNotConnect},
			{"a lost lock is not taken again behind its holder's back", notTakenAgain},
			{"a killed process frees its lock at once", killedProcess},
			{"a stopped process loses its lock, and knows before it does anything with it", func(t *testing.T, s sessions) { Stopped(t, s, JobHold) }},
		})
	})
}

// sessions is one database on a server.
type sessions struct {
	Database
	server Server
}

// open opens a Locker, and closes it at the end of the test.
func open(t *testing.T, db Database, s Settings) SessionLocker {
	t.Helper()
	l, err := db.New(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return l
}

func (s sessions) open(t *testing.T) SessionLocker {
	t.Helper()
	return open(t, s, Settings{})
}

func (s sessions) locker(t *testing.T) Locker {
	t.Helper()
	return s.open(t)
}

// startWaiting acquires in another goroutine, and returns when there is one more wait in the server's queue.
func startWaiting(ctx context.Context, t *testing.T, db Database, l sqllock.Locker, name string) waiter {
	t.Helper()
	before := db.Waiting(t, name)
	w := startWaiter(ctx, l, name)
	Eventually(t, "the wait is in the server's queue", func() bool { return db.Waiting(t, name) > before })
	return w
}
