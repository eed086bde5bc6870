package pg_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/refusal"
	"github.com/sqllock/sqllock/pg"
)

const backendPID = 4711

// probed is the answer of a server to the query that identifies it.
type probed struct {
	number  int
	version string
}

// I49.
func TestServersThatWouldNotKeepALockAreRefused(t *testing.T) {
	t.Parallel()
	for seen, answer := range map[string]probed{
		"CockroachDB":   {130000, "CockroachDB CCL v24.1.0"},
		"PostgreSQL 11": {110022, "PostgreSQL 11.22"},
	} {
		t.Run(seen, func(t *testing.T) {
			t.Parallel()
			mustRefuse(t, closing(t)(pg.New(startFake(t, answer))), seen)
		})
	}
}

// mustRefuse checks that a Locker acquires no lock, and that its error says why and what to do instead.
func mustRefuse(t *testing.T, l sqllock.Locker, seen string) {
	t.Helper()
	for name, acquire := range map[string]func(context.Context, string, ...sqllock.Option) (sqllock.Lock, error){
		"TryAcquire": l.TryAcquire, "Acquire": l.Acquire,
	} {
		_, err := acquire(t.Context(), "a")
		var refused *refusal.Error
		if !errors.Is(err, sqllock.ErrRefused) || !errors.As(err, &refused) {
			t.Fatalf("%s = %v; want a *refusal.Error", name, err)
		}
		if !strings.Contains(refused.Seen, seen) || refused.Instead == "" {
			t.Errorf("%s says %q", name, refused)
		}
		if sqllock.IsRetryable(err) {
			t.Errorf("%s: a refusal may be retried", name)
		}
	}
}

// startFake starts a fake PostgreSQL server that accepts connections and answers the query that identifies it, and
// returns its DSN.
func startFake(t *testing.T, answer probed) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_ = answer.serve(c)
			}()
		}
	}()
	return fmt.Sprintf("postgres://anybody@%s/any?sslmode=disable", listener.Addr())
}

func (p probed) serve(c net.Conn) error {
	backend := pgproto3.NewBackend(c, c)
	if _, err := backend.ReceiveStartupMessage(); err != nil {
		return err
	}
	backend.Send(&pgproto3.AuthenticationOk{})
	backend.Send(&pgproto3.ParameterStatus{Name: "standard_conforming_strings", Value: "on"})
	backend.Send(&pgproto3.ParameterStatus{Name: "client_encoding", Value: "UTF8"})
	backend.Send(&pgproto3.BackendKeyData{ProcessID: backendPID, SecretKey: binary.BigEndian.AppendUint32(nil, 1)})
	for {
		backend.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		if err := backend.Flush(); err != nil {
			return err
		}
		msg, err := backend.Receive()
		if err != nil {
			return err
		}
		if _, ok := msg.(*pgproto3.Query); !ok {
			return nil // the end, or a statement that must not reach a refused server
		}
		const int4, boolean, text = 23, 16, 25
		var columns []pgproto3.FieldDescription
		for _, oid := range []uint32{int4, int4, boolean, int4, text} {
			columns = append(columns, pgproto3.FieldDescription{Name: []byte("?"), DataTypeOID: oid, DataTypeSize: -1, TypeModifier: -1})
		}
		backend.Send(&pgproto3.RowDescription{Fields: columns})
		backend.Send(&pgproto3.DataRow{Values: [][]byte{
			[]byte("1"), []byte(strconv.Itoa(backendPID)), []byte("f"),
			[]byte(strconv.Itoa(p.number)), []byte(p.version),
		}})
		backend.Send(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")})
	}
}
