package commands

import (
	"fmt"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/console"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/flags"
)

const jsonRules = `With --json every command that prints something about locks, tables or itself
prints one JSON object instead; sqllock watch prints one on a line for each
event. What completion, help and man print is no data and has no such form, and
run prints nothing of its own: --log-format json is for what it says on stderr.

Every object begins with format_version. It is now %d, and rises when a field
gets another meaning or goes. New fields, states, kinds of events and findings
may come at any time: ignore those that you do not know. A field whose value is
not known, or does not apply, is left out. Times are in RFC 3339, in UTC, by the
clock of the database. Text in a database that is not valid UTF-8 is also there
in base64.

An error is text on stderr, also with --json, and the exit code tells its kind.
Only schema apply, schema check and doctor print an object then, too.`

const jsonLocks = `sqllock ls, sqllock show
  locks           an array with an object for each holder; those of show
                  also for a kind of lock that nobody holds:
    name            the name of the lock; of session locks only where it
                    is known
    name_base64     its bytes, when it is not valid UTF-8
    server_name     what the server calls a session lock: "key N", "key
                    N,N", or the name of GET_LOCK
    kind            "lease" or "session"
    state           "held", "kept" (released, and not free before until),
                    "expired" or "free"
    shared          true: others may hold it, too
    limit           how many may hold it at a time, if that is limited
    token           the fencing token; of a name without a holder, the
                    highest that it has had
    owner, host, pid, session, address, waiters
    waiter_since    since when somebody waits for the lease
    since, until    when it was taken, and when it ends unless it is
                    renewed
    left_seconds    from now to until
    metadata        what the holder attached
    metadata_base64 its bytes, when it is not valid UTF-8

sqllock watch
  time            of the answer that showed the event
  event           as sqllock watch --help lists them
  and the fields of one of the locks above

sqllock release
  name, name_base64, kind
  was             the holders that it was taken from, as objects like
                  those of locks; empty: it was free
  next_token      of a lease that was not free: the next token is that or
                  higher
  still_shared    how many sessions still share a session lock

sqllock purge
  deleted         how many leases were deleted`

const jsonOthers = `sqllock doctor
  findings, verdicts   arrays of objects:
    id              what it is about; of a verdict the kind of lock:
                    lease, session or transaction
    level           "ok", "warn" or "fail"; of a verdict also "none": the
                    database has no such locks
    text            what was found
    advice          what to do; left out when there is nothing to do

sqllock bench
  server, kind    what was measured
  duration_seconds   the time for each measurement
  results         an array of objects:
    name, count     what was measured, and how often
    at_once         how many were under way at the same time
    median_seconds, p99_seconds, mean_seconds
    per_second      at_once / mean_seconds; only of what was as fast as
                    can be

sqllock schema print, apply, check
  dialect         "postgres", "mysql" or "sqlite"
  tables_version  the version of the tables of this program
  sql             of print: the SQL that creates the tables
  ok              of apply and check: whether the tables are there, and
                  right
  problem         what is wrong otherwise

sqllock version
  release, tables_version, go, os, arch`

// jsonHelp describes all that --json prints.
func jsonHelp() string {
	return flags.Help(fmt.Sprintf(jsonRules, console.FormatVersion), jsonLocks, jsonOthers)
}
