// Package connector gets at the configuration of a *sql.DB, so that a Locker can open
// connections of its own and leaves the application's pool alone.
package connector

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"reflect"
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
	field := reflect.ValueOf(db).Elem().FieldByName("connector")
	if !field.IsValid() || field.Type() != reflect.TypeFor[driver.Connector]() {
		return nil, errors.New("sqllock: this version of database/sql hides how the *sql.DB connects; " +
			"open the Locker with a connection string instead")
	}
	c := *(*driver.Connector)(unsafe.Pointer(field.UnsafeAddr())) //nolint:gosec // type checked above, only read
	if takesFromPool(c) {
		return nil, errors.New("sqllock: this *sql.DB takes its connections from a *pgxpool.Pool, which locks " +
			"would use up; give the pool itself to pg.FromPool, or open a *sql.DB from a connection string")
	}
	return c, nil
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
