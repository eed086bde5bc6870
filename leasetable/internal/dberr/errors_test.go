package dberr_test

import (
	"errors"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
)

// Codes that no other test has a server send. I16.
func TestWhatACodeMeans(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name         string
		err          error
		outcomeKnown bool
		is           error // nil: none
	}{
		{"the lock table is full", &pgconn.PgError{Code: "53200"}, true, sqllock.ErrLimit},
		{"a statement is prepared again too often", &mysql.MySQLError{Number: 1615}, true, nil},
		{"the disk of PostgreSQL is full", &pgconn.PgError{Code: "53100"}, true, nil},
		{"the disk of MySQL is full", &mysql.MySQLError{Number: 1021}, true, nil},
		{"Group Replication cannot commit", &mysql.MySQLError{Number: 3100}, false, nil},
		{"a proxy is blocked by MySQL", &mysql.MySQLError{Number: 1129}, true, nil},
		{"MySQL Router lost the server", &mysql.MySQLError{Number: 2013}, false, nil},
		{"ProxySQL reaches no server", &mysql.MySQLError{Number: 9001}, false, nil},
		{"a server lost another one", &mysql.MySQLError{Number: 1160}, false, nil},
		{"a pooler is not let in", &pgconn.PgError{Code: "08004"}, false, nil},
		{"a pooler lost the server", &pgconn.PgError{Code: "58000"}, false, nil},
		{"an internal error of PostgreSQL", &pgconn.PgError{Code: "XX000"}, false, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			err := dberr.Classify(test.err)
			if known := dberr.OutcomeKnown(err); known != test.outcomeKnown || !sqllock.IsRetryable(err) || test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("outcome known: %t; retryable: %t; %v", known, sqllock.IsRetryable(err), err)
			}
		})
	}
}

func TestWhichErrorsOfConnectingPass(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err            error
		atFirst, later bool // whether it passes for a Locker that was not connected before, or was
	}{
		{errors.New("the network is away"), true, true},
		{&pgconn.PgError{Code: "F0001"}, true, true}, // no code of a server that lets nobody in
		{&pgconn.PgError{Code: "53300"}, true, true},
		{&mysql.MySQLError{Number: 4242}, true, true},
		{&pgconn.PgError{Code: "28000"}, false, true},
		{&pgconn.PgError{Code: "28P01"}, false, true},
		{&mysql.MySQLError{Number: 1045}, false, true},
		{&pgconn.PgError{Code: "3D000"}, false, false},
		{&pgconn.PgError{Code: "08P01", Message: "unsupported startup parameter: x"}, false, false},
		{&mysql.MySQLError{Number: 1049}, false, false},
		{&mysql.MySQLError{Number: 3118}, false, false},
		{&mysql.MySQLError{Number: 1193}, false, false}, // a parameter of the DSN is no variable
		{errors.Join(errors.New("of one host"), &mysql.MySQLError{Number: 1049}), false, false},
		{cannotOpenError{}, false, false},
		// go-sqlite3 in a program that was built without cgo.
		{errors.New("Binary was compiled with 'CGO_ENABLED=0', go-sqlite3 requires cgo to work. This is a stub"), false, false},
	} {
		for before, want := range map[bool]bool{false: test.atFirst, true: test.later} {
			err := dberr.Classify(dberr.NotConnected(test.err, before))
			if got := sqllock.IsRetryable(err); got != want || !errors.Is(err, test.err) {
				t.Errorf("%v: connected before: %t; retryable: %t", err, before, got)
			}
		}
	}
}

// cannotOpenError is the error of a SQLite file that cannot be opened.
type cannotOpenError struct{}

func (cannotOpenError) Error() string { return "unable to open database file" }
func (cannotOpenError) Code() int     { return 14 }
