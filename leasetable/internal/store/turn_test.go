package store_test

import (
	"context"
	"database/sql/driver"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/conn"
	"github.com/sqllock/sqllock/leasetable/internal/store"
	"github.com/sqllock/sqllock/schema"
)

// refuser is a server that answers each GET_LOCK with value, after some time.
type refuser struct {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	value driver.Value
	after time.Duration
}

func (r refuser) Connect(context.Context) (driver.Conn, error) { return r, nil }
func (r refuser) Driver() driver.Driver                        { return nil }
func (r refuser) Close() error                                 { return nil }

func (r refuser) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return driver.ResultNoRows, nil
}

func (r refuser) QueryContext(_ context.Context, text string, _ []driver.NamedValue) (driver.Rows, error) {
	if strings.Contains(text, "GET_LOCK") {
		<-time.After(r.after)
	}
	return &oneRow{value: r.value}, nil
}

// oneRow is an answer with one value.
type oneRow struct {
	value driver.Value
	read  bool
}

func (o *oneRow) Columns() []string { return []string{"n"} }
func (o *oneRow) Close() error      { return nil }

func (o *oneRow) Next(row []driver.Value) error {
	if o.read {
		return io.EOF
	}
	row[0], o.read = o.value, true
	return nil
}

// openTurn opens a turn on a server that c connects to. The caller calls done at the end.
func openTurn(t *testing.T, c driver.Connector) (turn store.Turn, done func()) {
	t.Helper()
	s, err := store.New(c, schema.MySQL, schema.Tables{}, store.Options{Most: conn.DefaultLimit})
	if err != nil {
		t.Fatal(err)
	}
	if turn, err = s.OpenTurn(t.Context()); err != nil {
		s.Close()
		t.Fatal(err)
	}
	return turn, func() {
		turn.Close()
		s.Close()
	}
}

// Waiters would ask again at once, as fast as the server answers. So it is an error, after which they poll.
func TestAnAnswerThatIsNoAnswerOfAQueueIsAnError(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		refuser
		fails bool
	}{
		"NULL":            {refuser{value: nil}, true},
		"refused at once": {refuser{value: int64(0)}, true},
		"refused in time": {refuser{value: []byte("0"), after: 2 * time.Second}, false},
		"granted at once": {refuser{value: int64(1)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				turn, done := openTurn(t, test.refuser)
				defer done()
				ours, err := turn.Wait(t.Context(), "x", 2500*time.Millisecond)
				if ours != (name == "granted at once") || (err != nil) != test.fails {
					t.Errorf("%t, %v", ours, err)
				}
			})
		})
	}
}

// recorder is a server that grants each turn, and records the statements that ask for one.
type recorder struct {
	refuser
	asked *[]string
}

func (r recorder) Connect(context.Context) (driver.Conn, error) { return r, nil }

func (r recorder) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	if strings.Contains(text, "GET_LOCK") {
		*r.asked = append(*r.asked, text)
	}
	return r.refuser.QueryContext(ctx, text, args)
}

// Processes of several versions stand in one queue. If the keys change, docs/upgrading.md has to say so.
func TestTheKeysOfTurnsDoNotChange(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int64{"x": -3615743475475001112, "é\x00": 2913689242311697294} {
		if got := store.PostgresTurn("sqllock_lock", name); got != want {
			t.Errorf("the key of the turn of %q is %d; want %d", name, got, want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		turn, done := openTurn(t, recorder{refuser{value: int64(1)}, &asked})
		defer done()
		if _, err := turn.Try(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		const want = "SELECT GET_LOCK(CONCAT('sqllock ', LEFT(SHA2(CONCAT(DATABASE(), 'cdd24c77516050e895a1254663be0139'), 256), 40)), 0)"
		if len(asked) != 1 || asked[0] != want {
			t.Errorf("the turn is asked for with %q; want %q", asked, want)
		}
	})
}
