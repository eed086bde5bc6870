package leasetable_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/internal/connector"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/schema"
)

// On SQLite each of these words occurs in one kind of statement only.
const (
	granting  = "INSERT INTO sqllock_lease"
	renewing  = "SET renewals = renewals + 1"
	taking    = "INSERT INTO sqllock_lock"
	releasing = "SET lease_id = NULL"
)

// lag is the duration of a statement, in the virtual time of a bubble. The driver ignores the context of the statement,
// like a driver that hangs or a process that was stopped.
type lag struct {
	request time.Duration // until the database receives it
	answer  time.Duration // until the response of the database arrives
	lost    bool          // the response never arrives, and the statement ends with its context
	broken  bool          // the connection ends before the response to a query arrives, and the driver says driver.ErrBadConn
}

// lags delays the statements on the connections of a pool, and records when they were sent.
type lags struct {
	driver.Connector

	mu   sync.Mutex
	next map[string][]lag       // guarded by mu: by the word of a statement; the last one is reused
	sent map[string][]time.Time // guarded by mu

	connecting time.Duration // guarded by mu: how long connecting takes
}

// newLagging opens a Locker on an SQLite file, in the bubble that t runs in. The clock of the file hardly moves.
func newLagging(t *testing.T, opts ...leasetable.Option) (*lags, *leasetable.Locker) {
	t.Helper()
	const cheap = "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)"
	db := open(t, "sqlite", "file:"+filepath.Join(t.TempDir(), "x.db")+cheap)
	if err := schema.Apply(t.Context(), db.DB, schema.SQLite, schema.Tables{}); err != nil {
		t.Fatal(err)
	}
	plain, err := connector.Of(db.DB)
	if err != nil {
		t.Fatal(err)
	}
	s := newLags(plain)
	lagging := sqlx.NewDb(sql.OpenDB(s), "sqlite")
	t.Cleanup(func() { _ = lagging.Close() }) // the test is over, so an error does not matter
	return s, newLocker(t, lagging, opts...)
}

func newLags(c driver.Connector) *lags {
	return &lags{Connector: c, next: make(map[string][]lag), sent: make(map[string][]time.Time)}
}

// delay makes the next statements with a word take this long. Later statements take as long as the last of them.
func (s *lags) delay(word string, next ...lag) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next[word] = next
}

// connectIn makes new connections take this long.
func (s *lags) connectIn(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connecting = d
}

// sentAt returns when a statement was sent: among the statements that contain word, the one with index before.
func (s *lags) sentAt(t *testing.T, word string, before int) time.Time {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sent[word]) <= before {
		t.Fatalf("%d statements were sent with %q", len(s.sent[word]), word)
	}
	return s.sent[word][before]
}

// count returns how many statements with a word were sent.
func (s *lags) count(word string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sent[word])
}

// begin is called when a statement is sent.
func (s *lags) begin(text string) (l lag) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, word := range []string{granting, renewing, taking, releasing} {
		if !strings.Contains(text, word) {
			continue
		}
		s.sent[word] = append(s.sent[word], time.Now())
		if next := s.next[word]; len(next) > 0 {
			l = next[0]
			s.next[word] = next[min(1, len(next)-1):]
		}
	}
	return l
}

// Connect implements driver.Connector.
func (s *lags) Connect(ctx context.Context) (driver.Conn, error) {
	s.mu.Lock()
	connecting := s.connecting
	s.mu.Unlock()
	if connecting > 0 {
		select {
		case <-time.After(connecting):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	dc, err := s.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return lagging{dc.(driven), s}, nil
}

type lagging struct {
	driven
	s *lags
}

// ExecContext implements driver.ExecerContext.
func (d lagging) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return lagged(ctx, d.s.begin(query), func() (driver.Result, error) { return d.driven.ExecContext(ctx, query, args) })
}

// QueryContext implements driver.QueryerContext.
func (d lagging) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	l := d.s.begin(query)
	rows, err := lagged(ctx, l, func() (driver.Rows, error) { return d.driven.QueryContext(ctx, query, args) })
	if err != nil || !l.broken {
		return rows, err
	}
	for row := make([]driver.Value, len(rows.Columns())); err == nil; {
		err = rows.Next(row) // the statement is over when its rows are
	}
	_ = rows.Close() // the connection has ended
	return nil, driver.ErrBadConn
}

func lagged[T any](ctx context.Context, l lag, run func() (T, error)) (T, error) {
	pass(l.request)
	if l.lost {
		var nothing T
		<-ctx.Done()
		return nothing, ctx.Err()
	}
	v, err := run()
	pass(l.answer)
	return v, err
}

// pass waits in virtual time.
func pass(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}
