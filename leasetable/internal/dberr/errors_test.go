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
