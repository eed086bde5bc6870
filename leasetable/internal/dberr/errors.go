package dberr

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/connector"
)

// Error is the error of a statement.
type Error struct {
	Err          error
	OutcomeKnown bool // the database said that the statement did nothing; otherwise it may have taken effect
	Transient    bool // the same statement may succeed later
	passing      bool // the server cannot do it at the moment: the same call may succeed in seconds
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Retryable answers for sqllock.IsRetryable.
func (e *Error) Retryable() bool { return e.Transient || e.passing }

// ErrUnreturned is the error of a statement that panics in a driver, or whose goroutine ends there. What it did is unknown.
var ErrUnreturned error = &Error{Err: errors.New("the statement did not return"), Transient: true}

// What an error code says about the statement that failed. Err is the sentinel that a caller matches.
var (
	conflict     = Error{OutcomeKnown: true, Transient: true}                // undone because of other transactions
	interrupted  = Error{Transient: true}                                    // the session ended, or the commit is in doubt
	unready      = Error{OutcomeKnown: true, Transient: true, passing: true} // the server accepts no connection at the moment
	noRoom       = Error{OutcomeKnown: true, Transient: true, passing: true, Err: sqllock.ErrLimit}
	refused      = Error{OutcomeKnown: true}
	noTable      = Error{OutcomeKnown: true, Err: sqllock.ErrSchema}
	addedColumn  = Error{OutcomeKnown: true, Err: fmt.Errorf("%w; `sqllock schema check` says which column has to be altered", sqllock.ErrSchema)}
	readOnly     = Error{OutcomeKnown: true, passing: true, Err: sqllock.ErrReadOnly} // a standby may be the primary soon
	readOnlyFile = Error{OutcomeKnown: true, Err: sqllock.ErrReadOnly}
)

// meanings has the codes that mean something here, except those of connector.ServerLost. For any other code it is unknown
// whether the statement took effect.
var meanings = map[string]Error{
	// PostgreSQL: SQLSTATE.
	"40001": conflict,    // serialization failure
	"40P01": conflict,    // deadlock
	"55P03": conflict,    // lock_timeout
	"57014": conflict,    // cancelled, or statement_timeout
	"53200": noRoom,      // the lock table is full, or no memory is left
	"53300": noRoom,      // too many connections
	"57P03": unready,     // the server is starting up, or shutting down
	"53000": unready,     // resources are used up
	"53100": unready,     // the disk is full
	"58030": interrupted, // an error of the disk
	"57P01": interrupted,
	"57P02": interrupted,
	"25P04": conflict, // transaction_timeout, which does not count during the commit
	"57P05": conflict, // idle_session_timeout: the session had ended before the statement came
	"26000": refused,  // the statement is not prepared in this session
	"42P05": refused,  // it is prepared already
	"42P01": noTable,
	"42703": noTable,
	"3F000": noTable,
	"23502": addedColumn, // a column that somebody has added is NOT NULL and has no default
	"25006": readOnly,
	"22003": refused, // a number that somebody has written is as high as can be
	"42501": refused, // no privilege
	"28P01": refused, // wrong password
	"28000": refused,
	"3D000": refused, // no such database

	connector.BadStartup: refused,

	// MySQL and MariaDB: error numbers.
	"mysql 1213": conflict, // deadlock; on Galera a conflict at commit
	"mysql 1205": conflict, // lock wait timeout
	"mysql 1020": conflict, // the row changed under the statement: MariaDB with innodb_snapshot_isolation, the default from 11.6
	"mysql 1040": noRoom,   // too many connections
	"mysql 1203": noRoom,
	"mysql 1226": noRoom,      // as many connections as this user may have
	"mysql 3032": unready,     // offline mode
	"mysql 1129": unready,     // too many connections of this host were cut off; a proxy may be that host
	"mysql 1021": unready,     // the disk is full
	"mysql 1114": unready,     // the table is full
	"mysql 1037": unready,     // no memory is left
	"mysql 1041": unready,     // the same
	"mysql 1135": unready,     // no thread can be started for a connection
	"mysql 1030": interrupted, // an error of the storage engine, such as a full disk
	"mysql 1461": conflict,    // max_prepared_stmt_count
	"mysql 1615": conflict,    // the table changed while a statement was prepared again
	"mysql 1243": conflict,    // the statement is not prepared in this session: a proxy has another one by now
	"mysql 3024": conflict,    // max_execution_time, which applies to reads only
	"mysql 1053": interrupted, // the server shuts down
	"mysql 1317": interrupted, // KILL QUERY
	"mysql 1927": interrupted, // KILL, MariaDB
	"mysql 3169": interrupted, // KILL, MySQL
	"mysql 4031": interrupted, // the session was idle for too long
	"mysql 1969": interrupted, // max_statement_time
	"mysql 1047": interrupted, // a Galera node that is not primary
	"mysql 1180": interrupted, // an error during COMMIT
	"mysql 3100": interrupted, // Group Replication cannot commit
	"mysql 3101": interrupted, // Group Replication undid the commit
	"mysql 1146": noTable,
	"mysql 1054": noTable,
	"mysql 1364": addedColumn, // a column that somebody has added has no default
	"mysql 1290": readOnly,
	"mysql 1792": readOnly,
	"mysql 1836": readOnly,
	"mysql 1044": refused, // no privilege
	"mysql 1045": refused, // wrong password
	"mysql 1049": refused, // no such database
	"mysql 1142": refused, // no privilege
	"mysql 1690": refused, // a number that somebody has written is as high as can be
	"mysql 1665": refused, // the binary log is one of statements, which READ COMMITTED does not go with
	"mysql 3159": refused, // require_secure_transport
	"mysql 1153": refused, // a statement for many names that is longer than max_allowed_packet

	// SQLite: primary result codes.
	"sqlite 5":  conflict, // busy
	"sqlite 6":  conflict, // locked
	"sqlite 8":  readOnlyFile,
	"sqlite 10": interrupted, // an error of the disk
	"sqlite 13": unready,     // the disk is full
	"sqlite 1":  noTable,     // our statements are right, so a table or a column is missing
}

// ErrSlow is the error of a statement that was not answered in time. It may have taken effect.
var ErrSlow = errors.New("the database did not answer in time")

// ErrUnsent is the error of a statement that was not sent, since its time was up before.
var ErrUnsent = errors.New("the statement was not sent")

// Unsent returns the error of a statement that was not sent because its context had ended with err.
func Unsent(err error) error {
	late := errors.Is(err, context.DeadlineExceeded)
	return &Error{Err: fmt.Errorf("%w: %w", Classify(err), ErrUnsent), OutcomeKnown: true, Transient: late}
}

// errIndirect is the error of a driver that leaves a statement to database/sql, which prepares it first.
var errIndirect = fmt.Errorf("%w: the driver's connection cannot begin, prepare, execute and query with a context, and at once; "+
	"use a current version of one of the drivers that leasetable.New names", sqllock.ErrUnsupported)

const applySchema = "run `sqllock schema apply` with --db naming this database, and the --prefix and --schema of this Locker if it has them, or call schema.Apply"

// Classify adds to an error of a driver what a caller can act on (I16).
func Classify(err error) error {
	if known := (*Error)(nil); err == nil || errors.As(err, &known) {
		return err
	}
	code := connector.CodeOf(err)
	means, _ := meaningOf(err)
	e := means
	e.Err = err
	switch {
	case connector.Unparsable(err):
		e.Err, e.OutcomeKnown = connector.ErrUnparsable, true
	case connector.Misprepared(err):
		e.Err = fmt.Errorf("%w; %s", err, connector.PrepareNothing)
	case errors.Is(err, driver.ErrSkip):
		e.Err, e.OutcomeKnown = fmt.Errorf("%w: %w", errIndirect, err), true
	case means == noTable:
		e.Err = fmt.Errorf("%w; %s: %w", sqllock.ErrSchema, applySchema, err)
	case means.Err != nil:
		e.Err = fmt.Errorf("%w: %w", means.Err, err)
	case errors.Is(err, context.DeadlineExceeded):
		// The deadline is ours. If the caller's own deadline passes, the caller's context shows it.
		e.Err = fmt.Errorf("%w: %v", ErrSlow, err) //nolint:errorlint // not the caller's deadline
		e.Transient = true
	case code == "" && !errors.Is(err, context.Canceled) && !connector.Untrusted(err) && !connector.WithoutCgo(err):
		e.Transient = true // the connection broke, or could not be opened
	}
	return &e
}

// meaningOf returns what err means, and reports whether its code is known.
func meaningOf(err error) (means Error, known bool) {
	if connector.ServerLost(err) {
		return interrupted, true
	}
	means, known = meanings[connector.CodeOf(err)]
	return means, known
}

// NotConnected adds to the error of a connection that was not opened what a caller can act on: an answer that is not
// known may be that of a proxy whose server is away, and passes. before reports whether another connection was opened
// before.
func NotConnected(err error, before bool) error {
	_, known := meaningOf(err)
	known = known && !connector.NotLetIn(err, false) // these depend on before
	if known || connector.CodeOf(err) == "" || connector.NotLetIn(err, before) {
		return err // Classify does
	}
	return &Error{Err: err, Transient: true}
}

// ReadOnly returns the error of a server that answers that it is read-only.
func ReadOnly(why string) error {
	e := readOnly
	e.Err = fmt.Errorf("%w: %s", readOnly.Err, why)
	return &e
}

// OutcomeKnown reports whether err means that the database said that the statement did nothing (I16).
func OutcomeKnown(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.OutcomeKnown
}

// IsFull reports whether err says that the server, or a pooler, has no connection for this user.
func IsFull(err error) bool {
	code := connector.CodeOf(err)
	return meanings[code] == noRoom || code == connector.Pooler
}
