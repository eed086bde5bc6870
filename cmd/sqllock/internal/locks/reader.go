package locks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/database"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/leasetable"
)

// sources are the queries of a command for each kind of lock.
type sources struct {
	leases   func(context.Context, *leasetable.Locker) ([]leasetable.Info, error)
	sessions func(context.Context, *database.Database, database.SessionLocker) ([]entry, error)
}

// reader reads the holders from a database, repeatedly. Between two readings it keeps one connection for each kind of
// lock.
type reader struct {
	*look
	from     sources
	db       *database.Database
	leases   *leasetable.Locker     // nil: leases are not read
	sessions database.SessionLocker // nil: session locks are not read

	refusal error     // why session locks could not be listed
	refused time.Time // when refusal was returned

	clock time.Time // the database's clock at asked
	asked time.Time // when clock was read, by this machine's clock
}

// askAgain is how long the reader assumes that a server still does not list session locks, and that its clock runs at
// the same rate as this machine's.
const askAgain = time.Minute

// reading has the holders at one time.
type reading struct {
	entries []entry
	now     time.Time       // by the clock that records holders
	known   map[string]bool // the kinds of lock that were read
	missing []error         // why the others were not read
}

// nothing returns a message that there are no entries, of the kinds that were read.
func (s reading) nothing() error {
	switch {
	case len(s.missing) == 0:
		return errors.New("there are no such locks")
	case s.known[database.KindLease]:
		return errors.New("there are no such leases; of session locks it is not known")
	}
	return errors.New("there are no such session locks; of leases it is not known")
}

// open returns a reader. It sends no query yet, except to an SQLite file.
func (l *look) open(cmd *cobra.Command, from sources) (_ *reader, err error) {
	db, err := l.OpenDatabase(cmd, l.Console)
	if err != nil {
		return nil, err
	}
	r := &reader{look: l, from: from, db: db}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	if l.kind != database.KindSession {
		if r.leases, err = l.Leases(cmd.Context(), db); err != nil {
			return nil, err
		}
	}
	if l.kind == database.KindSession || l.kind == database.KindAll && db.HasSessions() {
		if r.sessions, err = db.Session(database.LookTTL, database.Operator, false); err != nil {
			return nil, exit.With(exit.Usage, err)
		}
	}
	return r, nil
}

// close closes the connections. The Lockers hold nothing.
func (r *reader) close() {
	if r.leases != nil {
		_ = r.leases.Close()
	}
	if r.sessions != nil {
		_ = r.sessions.Close()
	}
	r.db.Close()
}

// read reads the holders and the time. It fails if no kind of lock can be read.
func (r *reader) read(ctx context.Context) (reading, error) {
	seen := reading{known: make(map[string]bool)}
	if r.leases != nil {
		infos, err := r.from.leases(ctx, r.leases)
		switch {
		case errors.Is(err, sqllock.ErrSchema):
			seen.missing = append(seen.missing, r.SchemaError(err))
		case err != nil:
			return reading{}, exit.With(exit.Unavailable, err)
		default:
			seen.known[database.KindLease] = true
		}
		seen.entries = leaseEntries(infos)
	}
	if r.sessions != nil {
		more, err := r.readSessions(ctx)
		switch {
		case database.NotShown(err):
			seen.missing = append(seen.missing, fmt.Errorf("session locks cannot be shown: %w", err))
		case err != nil:
			return reading{}, exit.With(exit.Unavailable, err)
		default:
			seen.known[database.KindSession] = true
		}
		seen.entries = append(seen.entries, more...)
	}
	if len(seen.known) == 0 {
		return reading{}, exit.With(exit.Unavailable, errors.Join(seen.missing...))
	}
	var err error
	seen.now, err = r.now(ctx)
	return seen, exit.With(exit.Unavailable, err)
}

// readSessions lists the session locks. If the server refuses, it does not ask again for a minute: on some servers each
// attempt takes a new connection.
func (r *reader) readSessions(ctx context.Context) ([]entry, error) {
	if r.refusal != nil && time.Since(r.refused) < askAgain {
		return nil, r.refusal
	}
	entries, err := r.from.sessions(ctx, r.db, r.sessions)
	r.refusal = nil
	if database.NotShown(err) {
		r.refusal, r.refused = err, time.Now()
	}
	return entries, err
}

// now returns the time of the database's clock. It queries the clock once a minute.
func (r *reader) now(ctx context.Context) (time.Time, error) {
	// Round strips the monotonic clock reading, because that clock stops while the machine sleeps.
	if passed := time.Now().Round(0).Sub(r.asked); passed >= 0 && passed < askAgain {
		return r.clock.Add(passed), nil
	}
	clock, err := r.db.Now(ctx)
	if err != nil {
		return time.Time{}, err
	}
	r.clock, r.asked = clock, time.Now().Round(0)
	return clock, nil
}
