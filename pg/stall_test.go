package pg_test

import (
	"bytes"
	"context"
	"net"
	"net/url"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/sqltest"
)

// delayer forwards connections between a client and its server. When armed, it holds back the next response to a
// request that contains a word, until free is closed.
type delayer struct {
	net.Listener
	server string
	conns  sync.WaitGroup

	mu   sync.Mutex
	word string        // guarded by mu: "" if not armed
	kept chan struct{} // closed when a response is held back
	free chan struct{} // closed to release the response
}

func delay(t *testing.T, db *sqltest.Database) (*delayer, string) {
	t.Helper()
	u, err := url.Parse(db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &delayer{Listener: listener, server: u.Host, kept: make(chan struct{}), free: make(chan struct{})}
	d.conns.Go(d.serve)
	t.Cleanup(func() {
		_ = listener.Close() // ends serve
		d.conns.Wait()
	})
	u.Host = listener.Addr().String()
	query := u.Query()
	query.Set("default_query_exec_mode", "exec") // so that a request contains its statement
	u.RawQuery = query.Encode()
	return d, u.String()
}

func (d *delayer) serve() {
	for {
		client, err := d.Accept()
		if err != nil {
			return
		}
		server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", d.server)
		if err != nil {
			_ = client.Close() // the client will report an error
			continue
		}
		d.conns.Go(func() { d.forward(server, client, d.watch) })
		d.conns.Go(func() { d.forward(client, server, d.hold) })
	}
}

// forward copies until one side ends, and passes each piece to see before it forwards the piece.
func (d *delayer) forward(to, from net.Conn, see func([]byte)) {
	defer to.Close()
	defer from.Close()
	for buf := make([]byte, 1<<16); ; {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		see(buf[:n])
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (d *delayer) watch(request []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.word != "" && bytes.Contains(request, []byte(d.word)) {
		d.word = ""
		close(d.kept)
	}
}

func (d *delayer) hold([]byte) {
	select {
	case <-d.kept:
		<-d.free
	default:
	}
}

func (d *delayer) arm(word string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.word = word
}

// A process is stopped, for longer than the session TTL, between the grant of a lock and the response. Nobody has that
// lock: one goroutine acquires it anew, and no second one besides.
func TestAStallBetweenGrantAndAnswerLetsOneIn(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqltest.Postgres(t)
	d, dsn := delay(t, db)
	d.arm("\x00sqllock_try\x00") // as in a Bind message, not as in the Parse message of the setup
	child := startProcess(t, dsn, 1500*time.Millisecond, "race")
	<-d.kept
	child.signal(t, syscall.SIGSTOP)
	close(d.free)
	eventually(t, "the server gives up the session", func() bool {
		return ask[int](t, db, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sqllock/child'") == 0
	})
	child.signal(t, syscall.SIGCONT)
	if got := child.line(); got != "taken once" {
		t.Errorf("the stopped process says: %s", got)
	}
}
