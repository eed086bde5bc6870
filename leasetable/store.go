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

// store runs the statements of one dialect on connections of its own.
type store struct {
	dialect  schema.Dialect
	texts    map[statement]string
	work     pool // acquisitions, releases and looks
	renewals pool // renewals, which nothing else may delay

	rowWaits rowWaitLimiter

	acquires, releases batcher

	known           knownTokens
	unreliableNotes atomic.Bool // a session did not keep what a statement had noted; see atOnce

	elsewhere driver.Connector // for connections of neither
	durable   bool             // releases are, too
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
	// All writers of a SQLite file wait for each other: there a statement of one's own is no help.
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
	// The connection for renewals is opened with the first lease, and stays as long as there is one: when the server has
	// none left, it is too late to ask for one.
	s.renewals.open(c, s.dialect, renewalConns)
	s.renewals.dialer.rest = renewableTime
}

// lacks reports whether the server had no connection left lately.
func (s *store) limited() bool { return s.work.limited() || s.renewals.limited() }

func (s *store) close() error {
	return errors.Join(s.work.Close(), s.renewals.Close())
}

// exec runs a statement.
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

// wire makes arguments fit to send. MariaDB takes bytes for text in the connection's character set,
// and stored the first bytes of an emoji, alone, as an empty name: there they go as hex.
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

// change runs a statement and returns how many rows it changed.
func (s *store) change(ctx context.Context, p *pool, st statement, args ...any) (int64, error) {
	result, err := s.exec(ctx, p, st, args...)
	if err != nil {
		return 0, classify(err)
	}
	rows, err := result.RowsAffected()
	return rows, classify(err)
}

// release runs the statement of that name.
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

// disown runs the statement of that name.
func (s *store) releaseByLease(ctx context.Context, name string, id []byte, keep time.Duration) (freed int64, err error) {
	req := &request{minHold: keep}
	if s.dialect == schema.MySQL { // its placeholders have no numbers
		return s.change(ctx, &s.work, releaseByLease, req.minHoldUS(), row{[]byte(name)}, id)
	}
	return s.change(ctx, &s.work, releaseByLease, row{[]byte(name)}, id, req.minHoldUS())
}

// acquire runs the statement of that name.
func (s *store) acquire(ctx context.Context, req *request) (got result, err error) {
	if s.dialect == schema.MySQL { // its placeholders have no numbers
		got.Token, err = s.claim(ctx, acquire, []byte(req.name), req.metadata, req.id, []byte(req.name), req.metadata, req.since, req.id)
	} else {
		got.Token, err = s.claim(ctx, acquire, []byte(req.name), req.id, req.since, req.metadata)
	}
	return got, err
}

// maxName is how many bytes a name has at most.
const maxName = 1024

// acquireFree takes a name that has a row and is free. It does not wait for a name that is held and locked.
func (s *store) acquireFree(ctx context.Context, req *request) (got result, err error) {
	if got, err = s.acquireKnown(ctx, req); got.Token != 0 || err != nil {
		return got, err
	}
	// MySQL cuts the end of its range to the length of a name, and looks the row of a longest one up as `name = ?`.
	if s.dialect == schema.MySQL && len(req.name) < maxName {
		got.Token, err = s.claim(ctx, acquireFree, req.metadata, req.since, req.id, []byte(req.name), []byte(req.name))
		return got, err
	}
	return s.acquire(ctx, req)
}

// insert takes a name that is absent. Except on PostgreSQL acquire inserts, too.
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

// takeover runs the statement of that name.
func (s *store) takeover(ctx context.Context, req *request, dead []byte) (token int64, err error) {
	if s.dialect == schema.MySQL { // its placeholders have no numbers
		return s.claim(ctx, takeover, req.id, req.metadata, req.since, row{[]byte(req.name)}, dead)
	}
	return s.claim(ctx, takeover, req.id, row{[]byte(req.name)}, dead, req.since, req.metadata)
}

// claim runs a statement that may grant a name and returns the token, or 0 if it did not.
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

// number runs a statement that returns one number, or nothing, which counts as 0.
func (s *store) number(ctx context.Context, p *pool, st statement, args ...any) (n int64, err error) {
	_, n, err = s.maybeNumber(ctx, p, st, args...)
	return n, err
}

// maybeNumber runs a statement that returns one number, and reports whether it did.
func (s *store) maybeNumber(ctx context.Context, p *pool, st statement, args ...any) (found bool, n int64, err error) {
	done, err := s.limitRowWait(ctx, p, st, args...)
	if err != nil {
		return false, 0, err
	}
	defer done()
	for range 3 { // as database/sql does with connections that turn out to be dead before anything is sent
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

// commit is the synchronous_commit of a statement that frees names on PostgreSQL, or nil for that of the
// session, as on other databases. What a crash of the server forgets of it, the owner finds out when it connects again, unless
// a pooler hides that. A name that is to be kept has to be found so.
func (s *store) commit(req *request) any {
	if s.dialect != schema.Postgres || s.durable || s.work.pooler.Load() || s.renewals.pooler.Load() || req.minHold > 0 {
		return nil
	}
	return "off"
}

// renew renews a lease, and returns what others changed about its locks; it reports whether the
// lease was there.
func (s *store) renew(ctx context.Context, id []byte) (there bool, changes int64, err error) {
	if s.dialect != schema.MySQL {
		return s.maybeNumber(ctx, &s.renewals, renew, id)
	}
	return s.changeNumber(ctx, &s.renewals, renew, id)
}

// changeNumber runs a statement on MySQL that changes one row, if it finds it, and gives a number as the
// insert id.
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

// sight is what look and list show of a name, and of each of those who hold it together.
type lockState struct {
	Name        []byte `db:"-"` // of list only; sights scans it, as the next ones
	Token       int64  `db:"token"`
	LeaseID     []byte `db:"-"`    // nil: released, or never taken
	Gone        bool   `db:"gone"` // the lease is over for good
	Owner       string `db:"owner"`
	Host        string `db:"host"`
	PID         int    `db:"pid"`
	AcquiredUS  int64  `db:"acquired_us"`
	ExpiresUS   int64  `db:"expires_us"`   // the end of the lease or, without one, of the time that the name is kept
	RemainingUS int64  `db:"remaining_us"` // until then
	TTLUS       int64  `db:"ttl_us"`
	Renewals    int64  `db:"renewals"`
	WaiterUS    int64  `db:"waiter_us"` // of look and list: since when another process waits for the name; 0: none is known to
	Metadata    []byte `db:"-"`

	// Of a name that several hold together, or held last, and of each of them: how many can, as who came last, or that one,
	// has asked; 0 for any number.
	Permits     sql.NullInt64 `db:"permits"`
	ExclusiveUS int64         `db:"exclusive_us"` // for how long nobody joins them
	Permit      bool          `db:"permit"`    // the row is that of one of them
	permits     []lockState   // those rows, by their tokens; of lookPlaces only
}

// raw is bytes that a statement returns as they are or, on PostgreSQL, as text in hex: what it makes of bytes in a text protocol depends on
// bytea_output.
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

// look reads who holds a name; a name that was never taken looks free.
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

// sights runs a statement that shows names.
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
