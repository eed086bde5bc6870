package mysql_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	gomysql "github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/sqltest"
)

func TestTheEndOfASessionIsToldThroughTLS(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		separator := "?"
		if strings.Contains(db.DSN, "?") {
			separator = "&"
		}
		dsn := db.DSN + separator + "tls=skip-verify"
		pool, err := sqlx.Open("mysql", dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		if err := pool.PingContext(t.Context()); errors.Is(err, gomysql.ErrNoTLS) {
			t.Skip("the server has no TLS")
		}
		locktest.ToldAtOnce(t, database{db}, locktest.Settings{DSN: dsn})
		locktest.ToldAtOnce(t, database{db}, locktest.Settings{DB: pool.DB})
	})
}

// The driver leaves the deadline of its last read on the socket, and it passes before the next heartbeat.
func TestTheEndOfASessionIsToldWhateverTheTimeoutForReading(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		config := parse(t, db.DSN)
		config.ReadTimeout = 3 * time.Second
		locktest.ToldAtOnce(t, database{db}, locktest.Settings{DB: locktest.SmallPool(t, "mysql", config.FormatDSN())})
	})
}

// lastWords forwards a connection between a client and its server, until it sends the client something and closes it.
type lastWords struct {
	listener net.Listener
	say      chan []byte // sent to the first client
}

func newLastWords(t *testing.T, server string) *lastWords {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &lastWords{listener: listener, say: make(chan []byte)}
	var running sync.WaitGroup
	running.Go(func() { w.serve(t, server) })
	t.Cleanup(func() {
		_ = listener.Close()
		running.Wait()
	})
	return w
}

func (w *lastWords) serve(t *testing.T, server string) {
	t.Helper()
	client, err := w.listener.Accept()
	if err != nil {
		return
	}
	defer client.Close()
	upstream, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server)
	if err != nil {
		t.Error(err)
		return
	}
	defer upstream.Close()
	go func() { _, _ = io.Copy(upstream, client) }()
	go func() { _, _ = io.Copy(client, upstream) }()
	select {
	case words := <-w.say:
		if _, err := client.Write(words); err != nil {
			t.Error(err)
		}
	case <-t.Context().Done():
	}
}

// A server that ends a session because of a timeout or a shutdown sends a message first, in a packet that may look like
// a response. A heartbeat that checks the connection then gets that packet as its response.
func TestTheEndOfASessionIsToldWhateverTheServerSaysFirst(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for number, name := range []string{"not an answer", "like an answer"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, db *sqltest.Database) {
				t.Helper()
				w := newLastWords(t, database{db}.config(t).Addr)
				dsn := database{db}.DSN(t, locktest.Access{Address: w.listener.Addr().String()})
				l := closing(t)(mysql.New(dsn, mysql.WithSessionTTL(time.Hour), mysql.WithHeartbeat(time.Hour)))
				locks := []sqllock.Lock{mustTry(t, l, "a"), mustTry(t, l, "b")}
				const clientInteractionTimeout = "\xbf\x0f"
				said := "\xff" + clientInteractionTimeout + "#HY000the client was silent"
				w.say <- []byte(string([]byte{byte(len(said)), 0, 0, byte(number)}) + said)
				for _, lock := range locks {
					mustBeLost(t, lock)
				}
			})
		})
	}
}

// sockets returns functions that open both ends of a connection, for every kind that is watched.
func sockets(t *testing.T) map[string]func(t *testing.T) (ours, theirs net.Conn) {
	t.Helper()
	connected := func(network, address string) func(t *testing.T) (ours, theirs net.Conn) {
		return func(t *testing.T) (ours, theirs net.Conn) {
			t.Helper()
			listener, err := (&net.ListenConfig{}).Listen(t.Context(), network, address)
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			if ours, err = (&net.Dialer{}).DialContext(t.Context(), network, listener.Addr().String()); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = ours.Close() })
			if theirs, err = listener.Accept(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = theirs.Close() })
			return ours, theirs
		}
	}
	return map[string]func(t *testing.T) (ours, theirs net.Conn){
		"tcp":  connected("tcp", "127.0.0.1:0"),
		"unix": connected("unix", filepath.Join(t.TempDir(), "socket")),
	}
}

func onEachSocket(t *testing.T, test func(t *testing.T, ours, theirs net.Conn)) {
	t.Helper()
	for network, open := range sockets(t) {
		t.Run(network, func(t *testing.T) {
			t.Parallel()
			ours, theirs := open(t)
			test(t, ours, theirs)
		})
	}
}

// mustEcho makes both ends send something to each other.
func mustEcho(t *testing.T, a, b net.Conn) {
	t.Helper()
	for _, c := range [][2]net.Conn{{a, b}, {b, a}} {
		said, heard := []byte("something"), make([]byte, len("something"))
		if _, err := c[0].Write(said); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c[1], heard); err != nil || !bytes.Equal(said, heard) {
			t.Fatalf("%q was heard: %v", heard, err)
		}
	}
}

func TestAnIdleConnectionIsWatchedUntilAStatementBegins(t *testing.T) {
	t.Parallel()
	onEachSocket(t, func(t *testing.T, ours, theirs net.Conn) {
		t.Helper()
		watch := mysql.Watch(ours)
		for range 2000 { // the statement begins before the watch is in the poller, or after
			ctx, statement := context.WithCancel(t.Context())
			go statement()
			if err := watch(ctx); err != nil {
				t.Fatal(err)
			}
			mustEcho(t, ours, theirs)
		}
		if err := ours.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil { // as the driver leaves it
			t.Fatal(err)
		}
		ctx, statement := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, statement)
		if err := watch(ctx); err != nil || ctx.Err() == nil {
			t.Fatalf("with an old deadline the watch ended with %v", err)
		}
		mustEcho(t, ours, theirs)
	})
}

func TestTheEndOfAnIdleConnectionIsSeen(t *testing.T) {
	t.Parallel()
	onEachSocket(t, func(t *testing.T, ours, theirs net.Conn) {
		t.Helper()
		watch := mysql.Watch(ours)
		ended := make(chan error, 1)
		go func() { ended <- watch(t.Context()) }()
		if err := theirs.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, io.EOF) {
			t.Errorf("at its end the watch said %v", err)
		}
		if err := watch(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("after its end the watch said %v", err)
		}
		_ = ours.Close()
		if err := watch(t.Context()); !errors.Is(err, net.ErrClosed) {
			t.Errorf("of a closed socket the watch said %v", err)
		}
	})
}

func TestWhatAServerSaysUnaskedIsDoubtedOnceASecond(t *testing.T) {
	t.Parallel()
	onEachSocket(t, func(t *testing.T, ours, theirs net.Conn) {
		t.Helper()
		watch := mysql.Watch(ours)
		if _, err := theirs.Write([]byte("unasked")); err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		if err := watch(t.Context()); !errors.Is(err, session.ErrDoubt) {
			t.Fatalf("the watch said %v", err)
		}
		for again := error(nil); !errors.Is(again, session.ErrDoubt); {
			ctx, statement := context.WithTimeout(t.Context(), 50*time.Millisecond)
			again = watch(ctx)
			statement()
			if after := time.Since(before); again != nil && after < time.Second {
				t.Fatalf("%v later the watch said %v", after, again)
			}
		}
		heard := make([]byte, len("unasked"))
		if _, err := io.ReadFull(ours, heard); err != nil || string(heard) != "unasked" {
			t.Errorf("what was said is heard as %q: %v", heard, err)
		}
	})
}

// wrapped is a socket that a dial function has wrapped, for example to count the bytes sent.
type wrapped struct{ *net.TCPConn }

func TestASocketThatIsNotTheSystemsIsNotWatched(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	for _, socket := range []net.Conn{nil, ours, wrapped{}} {
		if mysql.Watch(socket) != nil {
			t.Errorf("a %T is watched", socket)
		}
	}
}
