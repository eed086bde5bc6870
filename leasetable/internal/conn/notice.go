package conn

import (
	"database/sql/driver"
	"errors"
	"reflect"
	"sync/atomic"
	"unsafe"

	"github.com/sqllock/sqllock/internal/connector"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
)

// errUnreplicated is the error of a statement that PostgreSQL reports as done, with a warning that clients do not see:
// its wait for a synchronous standby was ended on the server, and the standby may not have the commit. It counts as a
// statement whose answer was lost.
var errUnreplicated = &dberr.Error{
	Err:       errors.New("committed, but perhaps not replicated: the wait for a synchronous standby was ended on the server"),
	Transient: true,
}

// waitRoutine is the routine of PostgreSQL that sends the warning. The warning is recognized by it, since messages are
// translated, and the code is that of any warning.
const waitRoutine = "SyncRepWaitForLSN"

// countUnreplicated counts such warnings on a pgx connection. The notice handler of the connection is the
// application's, in an unexported field, and is called as before.
func countUnreplicated(dc driver.Conn, n *atomic.Int64) {
	conn, ok := connector.Pgx(dc)
	if !ok {
		return
	}
	config := conn.MethodByName("PgConn").Call(nil)[0].Elem().FieldByName("config")
	if !config.IsValid() || config.Kind() != reflect.Pointer {
		return
	}
	config = reflect.NewAt(config.Type(), unsafe.Pointer(config.UnsafeAddr())).Elem() //nolint:gosec // the same field, writable
	handler := config.Elem().FieldByName("OnNotice")
	if !handler.IsValid() || handler.Kind() != reflect.Func || handler.Type().NumIn() != 2 || handler.Type().NumOut() != 0 {
		return
	}
	before := reflect.ValueOf(handler.Interface())
	handler.Set(reflect.MakeFunc(handler.Type(), func(args []reflect.Value) []reflect.Value {
		if routine := args[1].Elem().FieldByName("Routine"); routine.IsValid() && routine.String() == waitRoutine {
			n.Add(1)
		}
		if !before.IsNil() {
			before.Call(args)
		}
		return nil
	}))
}

// Replicated runs a statement. It fails with errUnreplicated if such a warning came meanwhile (I16).
func (p *Pool) Replicated(statement func() error) error {
	before := p.unreplicated.Load()
	err := statement()
	if err == nil && p.unreplicated.Load() != before {
		return errUnreplicated
	}
	return err
}
