// Package connector reads what database/sql and drivers do not export: how a *sql.DB connects, so that a Locker can
// open connections of its own and leaves the application's pool alone, and what a connection consists of.
package connector

import (
	"crypto/tls"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"reflect"
	"time"
	"unsafe"
)

// Of returns the driver.Connector that db opens its connections with.
//
// database/sql keeps it in an unexported field, under the same name since Go 1.10. Reading that field is the only way
// to open a connection like db's that does not count against db's MaxOpenConns: with a pool of size 1, a lock taken
// from the pool would starve the program that it protects. If the field ever goes, the error says what to do, and a
// test fails.
func Of(db *sql.DB) (driver.Connector, error) {
	if db == nil {
		return nil, errors.New("sqllock: the *sql.DB is nil")
	}
	c, ok := field[driver.Connector](db, "connector")
	if !ok {
		return nil, errors.New("sqllock: this version of database/sql hides how the *sql.DB connects; " +
			"open the Locker with a connection string instead")
	}
	return c, Check(c)
}

const mostWrappers = 8 // around a connector, at most

// Check returns an error for a connector that a Locker cannot use.
func Check(c driver.Connector) error {
	switch {
	case c == nil:
		return errors.New("sqllock: the driver.Connector is nil")
	case takesFromPool(reflect.ValueOf(c), mostWrappers):
		return errors.New("sqllock: this connects by taking connections from a *pgxpool.Pool, which locks " +
			"would use up; give the pool itself to pg.FromPool or pg.Connector, or use a connection string")
	}
	return nil
}

// Socket returns the socket of a connection of MySQL's driver (1.10) or of lib/pq (1.10 to 1.12), so that the caller can set
// deadlines on it. To have MySQL's driver do that takes two goroutine switches for every statement, and lib/pq does not do
// it. Socket returns nil if the socket is not known.
func Socket(dc driver.Conn) net.Conn {
	c, ok := field[net.Conn](dc, "netConn")
	if !ok {
		c, _ = field[net.Conn](dc, "c")
	}
	if t, ok := c.(*tls.Conn); ok {
		return t.NetConn()
	}
	return c
}

// Pgx returns the *pgx.Conn of a connection of pgx that database/sql uses, or of a transaction of pgx. It uses
// reflection, not pgx itself, because the user brings the driver. (The linker keeps methods whose names are constants.)
func Pgx(of any) (conn reflect.Value, ok bool) {
	method := reflect.ValueOf(of).MethodByName("Conn")
	if !method.IsValid() || method.Type().NumIn() != 0 || method.Type().NumOut() != 1 || method.Type().Out(0).String() != "*pgx.Conn" {
		return conn, false
	}
	conn = method.Call(nil)[0]
	return conn, !conn.IsNil()
}

// Unprepared returns a query mode for the first argument of a statement: with it pgx prepares nothing and runs the
// statement in one round trip. Behind a pooler, another session may answer the next round trip. It returns nil if there
// is no *pgx.Conn.
func Unprepared(of any) (mode any) {
	conn, ok := Pgx(of)
	if !ok {
		return nil
	}
	now := conn.MethodByName("Config").Call(nil)[0].Elem().FieldByName("DefaultQueryExecMode")
	if !now.IsValid() || !now.CanInt() {
		return nil
	}
	named := func(mode reflect.Value, name string) bool {
		s, ok := reflect.TypeAssert[fmt.Stringer](mode)
		return ok && s.String() == name
	}
	if named(now, "simple protocol") { // chosen by the application
		return now.Interface()
	}
	const modes = 5
	for n := range int64(modes) {
		mode := reflect.New(now.Type()).Elem()
		if mode.SetInt(n + 1); named(mode, "exec") {
			return mode.Interface()
		}
	}
	return nil
}

// Misprepared reports whether err is PostgreSQL's answer to a statement that is prepared in another session and not in
// this one, or that another client has prepared here already: a pooler is in between, and the statement has done
// nothing.
func Misprepared(err error) bool {
	const noSuchStatement, suchAStatement = "26000", "42P05"
	var answer interface{ SQLState() string }
	return errors.As(err, &answer) && (answer.SQLState() == noSuchStatement || answer.SQLState() == suchAStatement)
}

// PrepareNothing is the advice for a Misprepared error.
const PrepareNothing = "a pooler in between gives this connection now one session, now another: have the driver prepare nothing " +
	"(of pgx: default_query_exec_mode=exec in the URL), or let the pooler keep prepared statements (PgBouncer: max_prepared_statements)"

// ErrUnparsable is the error for a connection string that pgx cannot parse, or reads wrongly (dburl.IsMisread). pgx's own error
// repeats the string, with the password in some forms.
var ErrUnparsable = errors.New("the PostgreSQL connection string cannot be parsed; " +
	"it should look like postgres://user:password@host:5432/database, with what is special in the password, and any other @, percent-encoded")

// Unparsable reports whether err is pgx's error for such a string.
func Unparsable(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if reflect.TypeOf(err).String() == "*pgconn.ParseConfigError" {
			return true
		}
	}
	return false
}

// LastReset returns a pointer to the time when a connection of pgx's stdlib (5.12) was last taken from its pool. If
// that was more than a second ago, the driver pings the server before it uses the connection, which is a round trip. It
// returns nil if the field is not known, or if the application decides about the ping itself, by
// stdlib.OptionShouldPing.
func LastReset(dc driver.Conn) *time.Time {
	at := pointer[time.Time](dc, "lastResetSessionTime")
	if at != nil {
		if decides := reflect.ValueOf(dc).Elem().FieldByName("shouldPing"); decides.Kind() == reflect.Func && !decides.IsNil() {
			return nil
		}
	}
	return at
}

// field reads a field, even an unexported one, of the struct that v points to, if there is one of that name and type.
func field[T any](v any, name string) (value T, ok bool) {
	p := pointer[T](v, name)
	if p == nil {
		return value, false
	}
	return *p, true
}

// pointer returns a pointer to that field, or nil.
func pointer[T any](v any, name string) *T {
	p := reflect.ValueOf(v)
	if p.Kind() != reflect.Pointer || p.Elem().Kind() != reflect.Struct {
		return nil
	}
	f := p.Elem().FieldByName(name)
	if !f.IsValid() || f.Type() != reflect.TypeFor[T]() {
		return nil
	}
	return (*T)(unsafe.Pointer(f.UnsafeAddr())) //nolint:gosec // type checked above
}

// takesFromPool reports whether v is the connector of pgx's stdlib.OpenDBFromPool, or has that in a field, as libraries
// do that wrap a connector. depth bounds how many wrap each other, since a connector may have itself in a field.
func takesFromPool(v reflect.Value, depth int) bool {
	for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct || depth == 0 {
		return false
	}
	for i := range v.NumField() {
		switch f := v.Field(i); {
		case v.Type().Field(i).Name == "pool" && f.Type().String() == "*pgxpool.Pool":
			return !f.IsNil()
		case f.Type().Implements(reflect.TypeFor[driver.Connector]()) && takesFromPool(f, depth-1):
			return true
		}
	}
	return false
}
