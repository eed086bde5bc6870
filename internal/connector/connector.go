// Package connector gets at what database/sql and drivers keep to themselves: how a *sql.DB connects, so that a
// Locker can open connections of its own and leaves the application's pool alone, and what a connection is made of.
package connector

import (
	"crypto/tls"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net"
	"reflect"
	"time"
	"unsafe"
)

// Of returns the driver.Connector that db opens its connections with.
//
// database/sql keeps it in an unexported field, under one name since Go 1.10. Reading that
// field is the only way to open a connection like db's that does not count against db's
// MaxOpenConns: with a pool of size 1, a lock taken from the pool would starve the program
// that it protects. Should the field ever go, the error says what to do, and a test fails.
func Of(db *sql.DB) (driver.Connector, error) {
	if db == nil {
		return nil, errors.New("sqllock: the *sql.DB is nil")
	}
	c, ok := field[driver.Connector](db, "connector")
	if !ok {
		return nil, errors.New("sqllock: this version of database/sql hides how the *sql.DB connects; " +
			"open the Locker with a connection string instead")
	}
	if takesFromPool(c) {
		return nil, errors.New("sqllock: this *sql.DB takes its connections from a *pgxpool.Pool, which locks " +
			"would use up; give the pool itself to pg.FromPool, or open a *sql.DB from a connection string")
	}
	return c, nil
}

// Socket returns what a connection of MySQL's driver (1.10) sends and receives with, for who wants to cut it
// off; to have the driver do that takes two changes of goroutines for every statement. It is nil if it is not known.
func Socket(dc driver.Conn) net.Conn {
	c, _ := field[net.Conn](dc, "netConn")
	if t, ok := c.(*tls.Conn); ok {
		return t.NetConn()
	}
	return c
}

// LastReset returns where a connection of pgx's stdlib (5.12) notes when it was last taken from its pool. If that was more than a second
// ago the driver asks the server for a sign of life, which is a round trip, before the connection is used. It is nil if it is not
// known, or if the application decides that itself, by stdlib.OptionShouldPing.
func LastReset(dc driver.Conn) *time.Time {
	at := pointer[time.Time](dc, "lastResetSessionTime")
	if at != nil {
		if decides := reflect.ValueOf(dc).Elem().FieldByName("shouldPing"); decides.Kind() == reflect.Func && !decides.IsNil() {
			return nil
		}
	}
	return at
}

// field reads a field, maybe an unexported one, of the struct that v points to, if it has one of that name and type.
func field[T any](v any, name string) (value T, ok bool) {
	p := pointer[T](v, name)
	if p == nil {
		return value, false
	}
	return *p, true
}

// pointer returns where that field is, or nil.
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

// takesFromPool reports whether c is the connector of pgx's stdlib.OpenDBFromPool.
func takesFromPool(c driver.Connector) bool {
	v := reflect.Indirect(reflect.ValueOf(c))
	if v.Kind() != reflect.Struct {
		return false
	}
	pool := v.FieldByName("pool")
	return pool.IsValid() && pool.Type().String() == "*pgxpool.Pool" && !pool.IsNil()
}
