package connector

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Codes of PgBouncer's errors. Most of them pass: it has no room for another client, say, or lost the server.
const (
	Pooler     = "08P01"
	BadStartup = "08P01 startup" // of these, a parameter in the URL that it does not know
)

// CodeOf finds the database's code in a driver's error without importing the drivers: pgx and lib/pq have SQLState,
// go-sql-driver's MySQLError has a Number, SQLite drivers have a Code.
func CodeOf(err error) string {
	var state interface{ SQLState() string }
	if errors.As(err, &state) {
		if state.SQLState() == Pooler && strings.Contains(err.Error(), "unsupported startup parameter") {
			return BadStartup
		}
		return state.SQLState()
	}
	var coded interface{ Code() int }
	if errors.As(err, &coded) {
		return "sqlite " + strconv.Itoa(coded.Code()&0xff)
	}
	for ; err != nil; err = errors.Unwrap(err) {
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			for _, one := range joined.Unwrap() {
				if code := CodeOf(one); code != "" {
					return code
				}
			}
		}
		v := reflect.Indirect(reflect.ValueOf(err))
		if v.Kind() != reflect.Struct {
			continue
		}
		if n := v.FieldByName("Number"); strings.HasSuffix(v.Type().String(), "MySQLError") && n.CanUint() {
			return "mysql " + strconv.FormatUint(n.Uint(), 10)
		}
		if n := v.FieldByName("Code"); strings.HasPrefix(v.Type().String(), "sqlite3.") && n.CanInt() {
			return "sqlite " + strconv.FormatInt(n.Int()&0xff, 10)
		}
	}
	return ""
}

const sqlState = 5 // the length of PostgreSQL's codes

// NotLetIn reports whether the answer to a client that connects means that it is not admitted until something is
// changed. before reports whether this client was admitted before. Then a wrong password may pass: it was replaced, or a
// token has expired, and the next connection is given a fresh one.
func NotLetIn(err error, before bool) bool {
	switch code := CodeOf(err); {
	case code == "mysql 1045", len(code) == sqlState && code[:2] == "28":
		return !before
	case len(code) == sqlState:
		// A setting that the server does not understand (0A, 22, 42), no such database (3D), no right to connect to it (42, 55000).
		return slices.Contains([]string{"0A", "22", "3D", "42"}, code[:2]) || code == "55000"
	case strings.HasPrefix(code, "sqlite "): // no proxy is before a file
		return true
	default:
		return slices.Contains([]string{
			BadStartup,
			"mysql 1044", // no right to use the database
			"mysql 1049", // no such database
			"mysql 1130", // not from this host
			"mysql 1251", // another way of authentication
			"mysql 1698", // wrong user of the machine
			"mysql 1862", // the password must be changed
			"mysql 3118", // the account is locked
			"mysql 3159", // only with TLS
			"mysql 4151", // the account is locked: MariaDB
			"mysql 1524", // the plugin of the account is not loaded
			"mysql 1820", // the password must be changed first
			// A parameter of the DSN, which the driver sets at once, is none, or has a wrong value.
			"mysql 1064", "mysql 1115", "mysql 1210", "mysql 1193", "mysql 1227", "mysql 1229", "mysql 1231", "mysql 1232", "mysql 1238", "mysql 1253",
			"mysql 1273", "mysql 1298", "mysql 1621",
		}, code)
	}
}

// WithoutCgo reports whether err is that of github.com/mattn/go-sqlite3 in a program that was built without cgo: it
// opens nothing.
func WithoutCgo(err error) bool { return strings.Contains(err.Error(), "go-sqlite3 requires cgo") }

// ServerLost reports whether the answer to a statement means that a proxy in between has lost the server, or does not
// reach it. A session on the server has ended, or will. The statement may have taken effect.
func ServerLost(err error) bool {
	switch code := CodeOf(err); {
	case len(code) == sqlState && code[:2] == "08":
		return true
	case len(code) == len("mysql 2013") && strings.HasPrefix(code, "mysql 20"): // an error of the proxy as a client
		return true
	default:
		return slices.Contains([]string{
			"58000", "XX000", // PgCat, pgpool-II, Supavisor; an internal error of PostgreSQL itself, too
			"mysql 9001",                                           // ProxySQL
			"mysql 1158", "mysql 1159", "mysql 1160", "mysql 1161", // the network between two servers
		}, code)
	}
}
