package conn_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"net"
	"testing"
	"testing/synctest"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sqllock/sqllock/leasetable/internal/conn"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
)

// patient is a connection to PostgreSQL whose driver, as lib/pq, waits for an answer whatever its context says, and keeps
// its socket in a field of this name. Every byte that comes is an answer.
type patient struct {
	staged
	c net.Conn
}

// anError is an answer that says that the statement was cancelled.
const anError = 'E'

// wait waits for an answer.
func (p *patient) wait() error {
	answer := make([]byte, 1)
	_, err := p.c.Read(answer)
	if err == nil && answer[0] == anError {
		err = &pgconn.PgError{Code: "57014"}
	}
	return err
}

func (p *patient) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(1), p.wait()
}

func (p *patient) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return patientRows{p}, p.wait()
}

type patientRows struct{ *patient }

func (patientRows) Close() error                { return nil }
func (patientRows) Columns() []string           { return nil }
func (r patientRows) Next([]driver.Value) error { return r.wait() }

// patientStatements wait for an answer after a number of others.
var patientStatements = map[string]struct {
	answers int
	run     func(context.Context, conn.OtherConn) error
}{
	"exec": {0, func(ctx context.Context, c conn.OtherConn) error {
		_, err := c.ExecContext(ctx, "", nil)
		return err
	}},
	"query": {0, func(ctx context.Context, c conn.OtherConn) error {
		rows, err := c.QueryContext(ctx, "", nil)
		if err != nil {
			return err
		}
		return rows.Close()
	}},
	"rows": {1, func(ctx context.Context, c conn.OtherConn) error {
		rows, err := c.QueryContext(ctx, "", nil)
		if err != nil {
			return err
		}
		err = rows.Next(nil)
		return errors.Join(err, rows.Close())
	}},
}

func send(t *testing.T, server net.Conn, answer byte) {
	t.Helper()
	if _, err := server.Write([]byte{answer}); err != nil {
		t.Fatal(err)
	}
}

// begin runs a statement, up to where the server answers no more.
func begin(ctx context.Context, t *testing.T, name string) (c conn.OtherConn, server net.Conn, ended <-chan error) {
	t.Helper()
	statement := patientStatements[name]
	here, there := net.Pipe()
	c = conn.NewOtherConn(t, &patient{c: here})
	answer := make(chan error, 1)
	go func() { answer <- statement.run(ctx, c) }()
	for range statement.answers {
		send(t, there, 0)
	}
	synctest.Wait()
	return c, there, answer
}

func TestAStatementOfADriverThatWaitsForItsAnswerEndsWithItsContext(t *testing.T) {
	t.Parallel()
	for name := range patientStatements {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, leave := context.WithCancel(t.Context())
				c, _, ended := begin(ctx, t, name)
				leave()
				if err := <-ended; !errors.Is(err, context.Canceled) || c.IsValid() {
					t.Errorf("%v; the connection is valid: %t", err, c.IsValid())
				}
			})
		})
	}
}

// The driver asks the server to cancel the statement, and the answer says that it did nothing.
func TestAStatementThatTheServerCancelsHasAKnownOutcome(t *testing.T) {
	t.Parallel()
	for name := range patientStatements {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, leave := context.WithCancel(t.Context())
				c, server, ended := begin(ctx, t, name)
				leave()
				synctest.Wait()
				send(t, server, anError)
				if err := <-ended; !dberr.OutcomeKnown(dberr.Classify(err)) || c.IsValid() {
					t.Errorf("%v; the connection is valid: %t", err, c.IsValid())
				}
			})
		})
	}
}

func TestAConnectionOutlivesTheContextOfAStatementThatWasAnswered(t *testing.T) {
	t.Parallel()
	for name := range patientStatements {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, leave := context.WithCancel(t.Context())
				c, server, ended := begin(ctx, t, name)
				send(t, server, 0)
				if err := <-ended; err != nil {
					t.Fatal(err)
				}
				leave()
				if !c.IsValid() {
					t.Error("it does not")
				}
			})
		})
	}
}
