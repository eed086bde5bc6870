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

// gate forwards connections from sqllock to its database. Once it is closed, the database is unreachable.
type gate struct {
	listener net.Listener
	server   string
	running  sync.WaitGroup
	mu       sync.Mutex
	conns    []net.Conn // guarded by mu
	closed   bool       // guarded by mu
}

// behind returns the URL of a database, and a function that makes it unreachable.
func behind(t *testing.T, db testPlace) (url string, away func()) {
	t.Helper()
	url, at := gateway(t, db)
	return url, openGate(t, db, at).close
}

// gateway returns the URL of a database behind a gate, and the gate's address. The gate is not open yet.
func gateway(t *testing.T, db testPlace) (url, at string) {
	t.Helper()
	at = closedPort(t)
	return strings.Replace(db.url, serverOf(db), at, 1), at
}

// serverOf returns the address of a server.
func serverOf(db testPlace) string {
	_, rest, _ := strings.Cut(db.url, "127.0.0.1:")
	return "127.0.0.1:" + rest[:strings.IndexAny(rest, ")/")]
}

func openGate(t *testing.T, db testPlace, at string) *gate {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", at)
	must(t, err)
	g := &gate{listener: listener, server: serverOf(db)}
	g.running.Go(g.accept)
	t.Cleanup(g.close)
	return g
}

func (g *gate) accept() {
	for {
		client, err := g.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", g.server)
		if err != nil {
			_ = client.Close()
			return
		}
		g.mu.Lock()
		g.conns = append(g.conns, client, server)
		if g.closed {
			_, _ = client.Close(), server.Close()
		}
		g.mu.Unlock()
		for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
			g.running.Go(func() {
				_, _ = io.Copy(pair[0], pair[1])
				_ = pair[0].Close()
			})
		}
	}
}

func (g *gate) close() {
	_ = g.listener.Close()
	g.mu.Lock()
	g.closed = true
	for _, conn := range g.conns {
		_ = conn.Close()
	}
	g.mu.Unlock()
	g.running.Wait()
}

func TestAWaitOutlastsADatabaseThatIsAway(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db testPlace) {
		e := on(t, db.url)
		call(t, e, 0, nil, "schema", "apply")
		for name, flags := range map[string][]string{
			"lease": {"--wait", "80s", "--ttl", "1m"}, "session": {"--wait", "forever", "--kind", "session", "--ttl", "1m"},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				url, at := gateway(t, db)
				run := append(append([]string{"run"}, flags...), name, "--", "sh", "-c", "echo held; exec cat")
				atFirst := start(t, on(t, url), run...)
				atFirst.says("waiting: the database cannot be used for now: ")
				g := openGate(t, db, at)
				atFirst.expect("held")
				must(t, atFirst.stdin.Close())
				atFirst.exits(0, "refused")

				holder := held(t, e, append(flags, name)...)
				waiter := start(t, on(t, url), run...)
				if name == "lease" {
					waiter.waits(db)
				} else {
					db.until(t, waitingSession[db.Engine])
				}
				g.close()
				waiter.says("waiting: the database cannot be used for now: ")
				openGate(t, db, at)
				holder.letGo()
				waiter.expect("held")
				must(t, waiter.stdin.Close())
				waiter.exits(0, "the database cannot be used for now")
			})
		}
	})
}

var waitingSession = map[sqltest.Engine]string{
	sqltest.EnginePostgres: `SELECT COUNT(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
		WHERE l.locktype = 'advisory' AND NOT l.granted AND d.datname = current_database()`,
	sqltest.EngineMySQL:   "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND state = 'User lock'",
	sqltest.EngineMariaDB: "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND state = 'User lock'",
}

func TestADatabaseThatGoesAway(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db testPlace) {
		e := on(t, db.url)
		call(t, e, 0, nil, "schema", "apply")
		for _, flags := range [][]string{{"--ttl", "4s"}, {"--kind", "session", "--ttl", "5s"}} {
			run := func(more ...string) []string { return append(append([]string{"run"}, flags...), more...) }
			t.Run(flags[1], func(t *testing.T) {
				t.Parallel()
				url, away := behind(t, db)
				holder := held(t, on(t, url), append(flags, "held")...)
				away()
				holder.exits(76, "the command was ended")
				call(t, e, 0, nil, run("held", "--", "true")...) // nothing stays held

				url, away = behind(t, db)
				ending := held(t, on(t, url), append(flags, "ends")...)
				away()
				must(t, ending.stdin.Close())
				code := ending.exit()
				if says := ending.errors(); code != 0 && code != 76 || says == "" || strings.Contains(says, "somebody else") {
					t.Errorf("exit code %d, stderr %q", code, says)
				}
				call(t, e, 0, nil, run("ends", "--", "true")...)

				url, away = behind(t, db)
				other := held(t, e, append(flags, "busy")...)
				waiter := start(t, on(t, url), run("-v", "--wait", "12s", "busy", "--", "echo", "not run")...)
				waiter.says("waiting for the lock")
				away()
				if code := waiter.exit(); code != 69 {
					t.Errorf("exit code %d, stderr %q", code, waiter.errors())
				}
				other.letGo()
				call(t, e, 0, nil, run("--wait", "0", "busy", "--", "true")...)
			})
		}
	})
}
