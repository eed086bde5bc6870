package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/sqllock/sqllock/leasetable/internal/dberr"
)

// On MariaDB a statement can refuse to wait for row locks, so names are taken and freed without a read before: see "Locked
// rows" in chapter 6 of docs/design.md.

// longestAtOnce is the maximum length, in bytes, of a statement whose names are noted. Each note copies the notes
// before it, and the server bounds their length.
const longestAtOnce = 1 << 16

// atOnce changes the names of reqs by one statement that waits for no row lock. It returns the changed names with their
// tokens (I37). The requests are alike. If done is false, nothing was changed: atOnce does not apply, or the statement
// failed, maybe because a row was locked.
func (s *batchSteps) atOnce(ctx context.Context, st Statement, reqs []*Request) (changed map[string]Result, done bool, err error) {
	if !s.OnMariaDB() || s.OnGalera() || s.unreliableNotes.Load() {
		return nil, false, nil
	}
	known := false
	if st == acquireAtOnce {
		reqs, known = s.known.recall(reqs)
	}
	number := strconv.FormatUint(rand.Uint64(), 10) //nolint:gosec // not a secret
	text := s.TextFor(st, reqs, number)
	if len(text) > longestAtOnce {
		return nil, false, nil
	}
	conn, answer, err := s.execDedicated(ctx, text)
	if err != nil {
		return nil, !dberr.OutcomeKnown(err), err
	}
	defer conn.Close() // return it to the pool
	rows, err := answer.RowsAffected()
	wanted, idErr := answer.LastInsertId()
	switch err = errors.Join(err, idErr); {
	case err == nil && rows == 0:
		return map[string]Result{}, true, nil
	case err == nil && rows == int64(len(reqs)) && known:
		return withTokens(reqs, 1), true, nil
	case err == nil && rows == int64(len(reqs)) && st == releaseAtOnce && wanted == 0:
		return withTokens(reqs, 0), true, nil
	case err == nil:
		var told string
		if err = conn.QueryRowContext(ctx, "SELECT @told").Scan(&told); err == nil {
			changed, err = readTold(told, number)
		}
	}
	if err == nil && int64(len(changed)) != rows { // maybe because of a proxy that mixes sessions
		s.unreliableNotes.Store(true)
		err = fmt.Errorf("leasetable: %d rows were changed, and %d noted", rows, len(changed))
	}
	if err != nil { // whatever the database says: some names were changed
		return nil, true, &dberr.Error{Err: err, Transient: true}
	}
	return changed, true, nil
}

// execDedicated runs a statement on a connection of its own, and returns the connection, too.
func (s *batchSteps) execDedicated(ctx context.Context, text string) (conn *sql.Conn, result sql.Result, err error) {
	for range 3 { // retry like database/sql when a connection turns out to be dead before anything is sent
		if conn, err = s.Work.Conn(ctx); err != nil {
			break
		}
		if result, err = conn.ExecContext(ctx, text); err == nil {
			return conn, result, nil
		}
		_ = conn.Close() // the first error says more
		if !errors.Is(err, driver.ErrBadConn) {
			break
		}
	}
	return nil, nil, dberr.Classify(err)
}

// withTokens returns the results of names whose tokens rose by the given number.
func withTokens(reqs []*Request, by int64) map[string]Result {
	all := make(map[string]Result, len(reqs))
	for _, req := range reqs {
		all[req.Name] = Result{Token: req.Token + by}
	}
	return all
}

// readTold reads the note of the statement with this number. It returns no names if the note is another statement's.
func readTold(told, number string) (map[string]Result, error) {
	all := make(map[string]Result)
	fields := strings.Split(told, " ")
	if fields[0] != number {
		return all, nil
	}
	for ; len(fields) > 3; fields = fields[3:] {
		name, err := hex.DecodeString(fields[1])
		if err != nil {
			return nil, err
		}
		token, err := strconv.ParseInt(fields[2], 10, 64)
		if err != nil {
			return nil, err
		}
		all[string(name)] = Result{Token: token, HasWaiter: fields[3] != "0"}
	}
	return all, nil
}
