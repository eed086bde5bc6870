package schema

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/sqllock/sqllock/internal/backoff"
	"github.com/sqllock/sqllock/internal/jitter"
)

const (
	patience   = 10 * time.Second       // how long a busy database is tried again
	firstPause = 5 * time.Millisecond   // the first pause, about
	maxPause   = 250 * time.Millisecond // the longest pause, about
)

// patiently calls fn until it succeeds, fails for a reason that does not pass, or ctx or the time ends. fn must be safe
// to call again. The error is that of the last call, joined with the cause of ctx if that has ended.
func patiently(ctx context.Context, fn func() error) error {
	deadline := time.Now().Add(patience)
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		err := fn()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		if !passing(err) || time.Now().After(deadline) {
			return err
		}
		if ended := backoff.Sleep(ctx, jitter.Around(pause)); ended != nil {
			return errors.Join(err, ended)
		}
	}
}

// mysqlNumber finds the number of an error in the text that MySQL drivers give it.
var mysqlNumber = regexp.MustCompile(`Error (\d+)\b`)

// passingNumbers are errors of MySQL and MariaDB after which another try may succeed.
var passingNumbers = []string{
	"1020", // row changed since it was read (MariaDB, innodb_snapshot_isolation)
	"1047", // Galera node is not ready
	"1050", // table exists: created between the inspection and the statement
	"1180", // Galera or Group Replication conflict at commit
	"1205", // lock wait timeout
	"1213", // deadlock
	"1412", // table is younger than the snapshot
	"3101", // Group Replication conflict
}

// passingStates are errors of PostgreSQL after which another try may succeed.
var passingStates = []string{
	"23505", // unique violation: lost a race with CREATE TABLE IF NOT EXISTS of another tool
	"40001", // serialization failure
	"40P01", // deadlock
	"42710", // type exists: a table brings one of its name, and another has just made it
	"42P07", // table exists: created between the inspection and the statement
	"55P03", // lock timeout, where one is set: another migration goes on
}

// passing reports whether another try may succeed after err. Drivers are not imported here, so it reads the texts of
// their errors.
func passing(err error) bool {
	if state := sqlState(err); state != "" {
		return slices.Contains(passingStates, state) ||
			strings.Contains(err.Error(), "tuple concurrently updated") // XX000: COMMENT ON raced
	}
	text := err.Error()
	if number := mysqlNumber.FindStringSubmatch(text); number != nil {
		return slices.Contains(passingNumbers, number[1])
	}
	// SQLite: SQLITE_BUSY and SQLITE_LOCKED.
	return strings.Contains(text, "database is locked") ||
		strings.Contains(text, "database table is locked") ||
		strings.Contains(text, "database schema is locked")
}
