package leasetable

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/internal/connector"
	"github.com/sqllock/sqllock/schema"
)

// store runs the statements of one dialect on its own connections.
type store struct {
	dialect  schema.Dialect
	texts    map[statement]string
	work     pool // acquisitions, releases and reads
	renewals pool // renewals, which nothing else may delay

	rowWaits rowWaitLimiter

	acquires, releases batcher

	known           knownTokens
	unreliableNotes atomic.Bool // a session did not keep the notes of a statement; see atOnce

	elsewhere driver.Connector // opens connections that belong to neither pool
	durable   bool             // releases are durable, like acquisitions; see WithDurableRelease
}

func newStore(c driver.Connector, d schema.Dialect, t schema.Tables) (*store, error) {
	if err := t.Validate(d); err != nil {
		return nil, err
	}
	texts, err := loadStatements(d, t)
	if err != nil {
		return nil, err
	}
	c = connector.Sharing(c, connectTimeout)
	s := &store{dialect: d, texts: texts, elsewhere: c, rowWaits: newRowWaitLimiter()}
	newBatchers(&s.releases, &s.acquires)
	s.acquires.one, s.releases.one = s.acquire, s.release
	s.acquires.retry, s.releases.retry = s.retry(s.acquire), s.retry(s.release)
	s.acquires.saturated, s.releases.saturated = s.rowWaits.saturated, s.rowWaits.saturated
	s.acquires.many, s.releases.many = s.acquireMany, s.releaseMany
	s.acquires.within, s.releases.within = conflictTimeout, attemptTimeout
	// All writers of a SQLite file wait for each other, so separate statements gain nothing there.
	s.acquires.serialized, s.releases.serialized = d == schema.SQLite, d == schema.SQLite
	s.open(c)
	return s, nil
}

// open opens the pools.
func (s *store) open(c driver.Connector) {
	found := new(findings)
	s.work.findings, s.renewals.findings = found, found
	s.work.loan.from, s.renewals.loan.from = &s.renewals, &s.work
	s.renewals.loan.turn = make(chan struct{}, 1)
	s.work.open(c, s.dialect, workConns)
	s.work.SetConnMaxIdleTime(idleTime)
	// The connection for renewals is opened with the first lease, and stays open while there is a lease. Once the
	// server has no connection left, it is too late to open one.
	s.renewals.open(c, s.dialect, renewalConns)
	s.renewals.dialer.rest = renewableTime
}

// limited reports whether the server recently had no connection left.
func (s *store) limited() bool { return s.work.limited() || s.renewals.limited() }

func (s *store) close() error {
	return errors.Join(s.work.Close(), s.renewals.Close())
}

// exec runs a statement once it may wait for row locks; see limitRowWait.
func (s *store) exec(ctx context.Context, p *pool, st statement, args ...any) (sql.Result, error) {
	done, err := s.limitRowWait(ctx, p, st, args...)
	if err != nil {
		return nil, err
	}
	defer done()
	return p.ExecContext(ctx, s.texts[st], s.wire(args)...)
}

// query runs a statement that returns rows.
func (s *store) query(ctx context.Context, p *pool, st statement, args ...any) (*sqlx.Rows, error) {
	return p.QueryxContext(ctx, s.texts[st], s.wire(args)...)
}

// wire converts arguments to values that can be sent. MariaDB reads bytes as text in the character set of the
// connection: it stored the first bytes of an emoji, alone, as an empty name. So bytes are sent as hex to MySQL and
// MariaDB.
func (s *store) wire(args []any) []any {
	for i, arg := range args {
		if r, ok := arg.(row); ok {
			arg = r.key
			args[i] = arg
		}
		if b, ok := arg.([]byte); ok && b != nil && s.dialect == schema.MySQL {
			args[i] = hex.EncodeToString(b)
		}
	}
	return args
}

// change runs a statement and returns the number of rows that it changed.
func (s *store) change(ctx context.Context, p *pool, st statement, args ...any) (int64, error) {
	result, err := s.exec(ctx, p, st, args...)
	if err != nil {
		return 0, classify(err)
	}
	rows, err := result.RowsAffected()
	return rows, classify(err)
}

// release runs release_known.sql if that suffices, and otherwise release.sql or release_async.sql.
func (s *store) release(ctx context.Context, req *request) (got result, err error) {
	if got, err = s.releaseKnown(ctx, req); got.Token != 0 || err != nil {
		return got, err
	}
	keepUS := req.minHoldUS()
	var freed bool
	var n int64
	switch {
	case s.dialect == schema.MySQL: // its placeholders have no numbers
		freed, n, err = s.changeNumber(ctx, &s.work, release, keepUS, []byte(req.name), req.id, req.token)
	case s.commit(req) != nil:
		freed, n, err = s.maybeNumber(ctx, &s.work, releaseAsync, []byte(req.name), req.id, req.token)
	default:
		freed, n, err = s.maybeNumber(ctx, &s.work, release, []byte(req.name), req.id, req.token, keepUS)
	}
	if freed {
		got = result{Token: req.token, HasWaiter: n > 0}
		s.noteReleased(req, got.HasWaiter)
	}
	return got, err
}

// releaseByLease runs release_by_lease.sql.
func (s *store) releaseByLease(ctx context.Context, name string, id []byte, keep time.Duration) (freed int64, err error) {
	req := &request{minHold: keep}
	if s.dialect == schema.MySQL { // its placeholders have no numbers
		return s.change(ctx, &s.work, releaseByLease, req.minHoldUS(), row{[]byte(name)}, id)
	}
	return s.change(ctx, &s.work, releaseByLease, row{[]byte(name)}, id, req.minHoldUS())
}

// acquire runs acquire.sql.
func (s *store) acquire(ctx context.Context, req *request) (got result, err error) {
	if s.dialect == schema.MySQL { // its placeholders have no numbers
		got.Token, err = s.claim(ctx, acquire, []byte(req.name), req.metadata, req.id, []byte(req.name), req.metadata, req.since, req.id)
	} else {
		got.Token, err = s.claim(ctx, acquire, []byte(req.name), req.id, req.since, req.metadata)
	}
	return got, err
}

// maxName is the maximum length of a name in bytes.
const maxName = 1024

// acquireFree acquires a name that has a row and is free. It does not wait for the row of a name that is held and
// locked.
func (s *store) acquireFree(ctx context.Context, req *request) (got result, err error) {
	if got, err = s.acquireKnown(ctx, req); got.Token != 0 || err != nil {
		return got, err
	}
	// MySQL truncates the upper bound of the range in acquire_free.sql to the length of a name, and looks up a name of
	// the maximum length as `name = ?`.
	if s.dialect == schema.MySQL && len(req.name) < maxName {
		got.Token, err = s.claim(ctx, acquireFree, req.metadata, req.since, req.id, []byte(req.name), []byte(req.name))
		return got, err
	}
	return s.acquire(ctx, req)
}

// insert acquires a name that has no row. On MySQL and SQLite the acquire statements insert, too.
func (s *store) insert(ctx context.Context, req *request) (token int64, err error) {
	var got result
	switch s.dialect {
	case schema.MySQL:
		got, err = s.acquires.retry(ctx, req)
	case schema.SQLite:
		got, err = s.acquires.do(ctx, req, false)
	default:
		return s.claim(ctx, insert, []byte(req.name), req.id, req.metadata)
	}
	return got.Token, err
}

// takeover runs takeover.sql.
func (s *store) takeover(ctx context.Context, req *request, dead []byte) (token int64, err error) {
	if s.dialect == schema.MySQL { // its placeholders have no numbers
		return s.claim(ctx, takeover, req.id, req.metadata, req.since, row{[]byte(req.name)}, dead)
	}
	return s.claim(ctx, takeover, req.id, row{[]byte(req.name)}, dead, req.since, req.metadata)
}

// claim runs a statement that may acquire a name. It returns the token, or 0 if the statement did not acquire the name.
func (s *store) claim(ctx context.Context, st statement, args ...any) (token int64, err error) {
	if s.dialect == schema.MySQL {
		result, err := s.exec(ctx, &s.work, st, args...)
		if err != nil {
			return 0, classify(err)
		}
		token, err = result.LastInsertId() // the affected rows depend on clientFoundRows
		return token, classify(err)
	}
	return s.number(ctx, &s.work, st, args...)
}

// number runs a statement that returns one number or no row. No row counts as 0.
func (s *store) number(ctx context.Context, p *pool, st statement, args ...any) (n int64, err error) {
	_, n, err = s.maybeNumber(ctx, p, st, args...)
	return n, err
}

// maybeNumber runs a statement that returns one number or no row. It reports whether there was a row.
func (s *store) maybeNumber(ctx context.Context, p *pool, st statement, args ...any) (found bool, n int64, err error) {
	done, err := s.limitRowWait(ctx, p, st, args...)
	if err != nil {
		return false, 0, err
	}
	defer done()
	for range 3 { // database/sql does the same when a connection turns out to be dead before anything is sent
		err = p.replicated(func() (err error) {
			found, n, err = p.number(ctx, s.texts[st], s.wire(args))
			return err
		})
		if !errors.Is(err, driver.ErrBadConn) {
			break
		}
	}
	return found, n, classify(err)
}

// commit returns the synchronous_commit of a statement that releases names on PostgreSQL, or nil for the setting of the
// session, as on other databases. If a crash of the server forgets such a release, the owner finds out when it connects
// again. A pooler hides that, and a minimum hold has to survive the crash: then commit returns nil.
func (s *store) commit(req *request) any {
	if s.dialect != schema.Postgres || s.durable || s.work.pooler.Load() || s.renewals.pooler.Load() || req.minHold > 0 {
		return nil
	}
	return "off"
}

// renew renews a lease. It reports whether the lease row was there, and returns the count of changes that others made
// to the locks of the lease.
func (s *store) renew(ctx context.Context, id []byte) (there bool, changes int64, err error) {
	if s.dialect != schema.MySQL {
		return s.maybeNumber(ctx, &s.renewals, renew, id)
	}
	return s.changeNumber(ctx, &s.renewals, renew, id)
}

// changeNumber runs a statement on MySQL that changes one row, if it finds it, and returns a number as the insert id.
// It reports whether it found the row.
func (s *store) changeNumber(ctx context.Context, p *pool, st statement, args ...any) (found bool, n int64, err error) {
	result, err := s.exec(ctx, p, st, args...)
	if err != nil {
		return false, 0, classify(err)
	}
	rows, err := result.RowsAffected()
	if err != nil || rows == 0 {
		return false, 0, classify(err)
	}
	n, err = result.LastInsertId()
	return true, n, classify(err)
}

// lockState is a row of a statement that reads or lists names and permits: the state of a name, or of one of its
// permits.
type lockState struct {
	Name        []byte `db:"-"` // of statements for several names; states scans it, like the other fields with "-"
	Token       int64  `db:"token"`
	LeaseID     []byte `db:"-"`    // nil: no lease holds the name
	Gone        bool   `db:"gone"` // the lease row is gone: the lease is over for good
	Owner       string `db:"owner"`
	Host        string `db:"host"`
	PID         int    `db:"pid"`
	AcquiredUS  int64  `db:"acquired_us"`
	ExpiresUS   int64  `db:"expires_us"`   // the end of the lease or, without a lease, of the minimum hold
	RemainingUS int64  `db:"remaining_us"` // time until then
	TTLUS       int64  `db:"ttl_us"`
	Renewals    int64  `db:"renewals"`
	WaiterUS    int64  `db:"waiter_us"` // of read_state and list: since when another process waits for the name; 0: no waiter is known
	Metadata    []byte `db:"-"`

	// Permits is set for a name with shares or permits, also when the last of them was released, and for each share or
	// permit. It is the limit that the latest acquisition of the name, or this holder, requested; 0: no limit.
	Permits     sql.NullInt64 `db:"permits"`
	ExclusiveUS int64         `db:"exclusive_us"` // for how long no share or permit is granted, because a waiter wants the whole name
	Permit      bool          `db:"permit"`       // the row is a share or permit
	permits     []lockState   // the rows of the shares and permits, by token; set by readPermits and List
}

// raw is bytes that a statement returns as they are or, on PostgreSQL, as text in hex: the form of bytes in a text
// protocol depends on bytea_output there.
type raw []byte

// Scan implements sql.Scanner.
func (r *raw) Scan(from any) (err error) {
	switch from := from.(type) {
	case nil:
		*r = nil
	case []byte:
		*r = slices.Clone(from)
	case string:
		*r, err = hex.DecodeString(from)
	default:
		err = fmt.Errorf("leasetable: the driver gives %T for bytes", from)
	}
	return err
}

// read reads the state of a name, with its shares or permits. A name that was never acquired reads as free.
func (s *store) read(ctx context.Context, name string) (state lockState, err error) {
	all, err := s.states(ctx, readState, []byte(name))
	if err != nil || len(all) == 0 {
		return lockState{}, err
	}
	if all[0].Permits.Valid {
		return s.readPermits(ctx, name)
	}
	return all[0], nil
}

// states runs a statement that returns names, shares or permits.
func (s *store) states(ctx context.Context, st statement, args ...any) (all []lockState, err error) {
	rows, err := s.query(ctx, &s.work, st, args...)
	if err != nil {
		return nil, classify(err)
	}
	defer rows.Close()
	for rows.Next() {
		var row struct {
			lockState
			Name     raw `db:"name"`
			LeaseID  raw `db:"lease_id"`
			Metadata raw `db:"metadata"`
		}
		if err := rows.StructScan(&row); err != nil {
			return nil, classify(err)
		}
		row.lockState.Name, row.lockState.LeaseID, row.lockState.Metadata = row.Name, row.LeaseID, row.Metadata
		all = append(all, row.lockState)
	}
	return all, classify(rows.Err())
}
