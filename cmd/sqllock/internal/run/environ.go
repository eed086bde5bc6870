package run

import (
	"errors"
	"strconv"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/database"
	"github.com/sqllock/sqllock/leasetable"
)

// EnvironmentHelp says which variables the command finds.
const EnvironmentHelp = `The command finds in its environment:
  SQLLOCK_NAME      the name of the lock
  SQLLOCK_OWNER     what the holder calls itself: --owner, or its default
  SQLLOCK_TOKEN     of a lease: a number that rises with every holder
  SQLLOCK_EXPIRES   of a lease: until when the lock was sure to last when
                    the command was started. sqllock ends the command
                    then if no renewal succeeds before; as renewals go
                    on, a command usually runs past it. It is in UTC by
                    the clock of this machine, in the form
                    2026-01-31T23:59:59.999Z (RFC 3339).
SQLLOCK_DB is there if it was set, for other calls of sqllock; --db and
--db-file are not.`

var errNested = errors.New("SQLLOCK_NAME says that it runs below a sqllock run of this name, which releases the lock when its command has ended")

// nested reports whether a sqllock run of the same name and kind has started this one. It does not know whether that was in
// the same database and has not ended yet.
func (r *run) nested() bool {
	_, lease := r.LookupEnv("SQLLOCK_TOKEN")
	return r.Getenv("SQLLOCK_NAME") == r.name && lease == (r.kind == database.KindLease)
}

// rfc3339 is a form of RFC 3339 that truncates to milliseconds, so the printed time is never later than the real one.
const rfc3339 = "2006-01-02T15:04:05.000Z07:00"

// childEnv returns the environment of the command, without the variables that an outer sqllock has set.
func (r *run) childEnv(lock sqllock.Lock) []string {
	env := r.EnvironWithout("SQLLOCK_NAME", "SQLLOCK_OWNER", "SQLLOCK_TOKEN", "SQLLOCK_EXPIRES")
	env = append(env, "SQLLOCK_NAME="+r.name, "SQLLOCK_OWNER="+r.holder())
	if lease, ok := lock.(*leasetable.Lease); ok {
		env = append(env,
			"SQLLOCK_TOKEN="+strconv.FormatInt(lease.Token(), 10),
			"SQLLOCK_EXPIRES="+time.Now().Add(lease.Remaining()).UTC().Format(rfc3339))
	}
	return env
}
