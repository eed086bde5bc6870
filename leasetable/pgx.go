package leasetable

import (
	"context"
	"database/sql/driver"
	"reflect"
)

// What a connection of pgx can do and database/sql does not know of is reached without pgx itself,
// for the user brings the driver. (The linker keeps methods whose names are constants.)

// pgxConn returns the *pgx.Conn of a connection, if it has one.
func pgxConn(dc driver.Conn) (conn reflect.Value, ok bool) {
	method := reflect.ValueOf(dc).MethodByName("Conn")
	if !method.IsValid() || method.Type().NumIn() != 0 || method.Type().NumOut() != 1 || method.Type().Out(0).String() != "*pgx.Conn" {
		return conn, false
	}
	return method.Call(nil)[0], true
}

// waiterOf returns what waits for a notification on a connection of pgx.
func waiterOf(dc driver.Conn) func(ctx context.Context) (payload string, err error) {
	conn, _ := pgxConn(dc)
	wait := conn.MethodByName("WaitForNotification")
	return func(ctx context.Context) (string, error) {
		out := wait.Call([]reflect.Value{reflect.ValueOf(ctx)})
		if err, _ := reflect.TypeAssert[error](out[1]); err != nil {
			return "", err
		}
		return out[0].Elem().FieldByName("Payload").String(), nil
	}
}

// isDirect reports whether a connection is known to lead to PostgreSQL itself, and not to a pooler:
// the process that serves it is the one that it was told of when it was opened. Of such a session lookUpByIndexIn is true.
func isDirect(ctx context.Context, dc driver.Conn) (bool, error) {
	conn, ok := pgxConn(dc)
	if !ok {
		return false, nil
	}
	told := conn.MethodByName("PgConn").Call(nil)[0].MethodByName("PID").Call(nil)[0].Uint()
	return lookUpByIndexIn(ctx, dc, told)
}
