package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// On a server that stays, each process holds a lock as long as it has databases there. Their names contain the name of the
// lock, so that every other process can tell which databases belong to nobody any more.

// ownMark is this process in the names of its databases.
var ownMark = strings.ToLower(randomID())

var serial atomic.Int64

// newName returns a name for a database on s. The time helps a person to judge an old one. Nobody sweeps the databases of
// SQLTEST_KEEP, nor those on a server that ends with the run: no process holds a lock there, and another one may know that
// server by its DSN.
func (s server) newName() string {
	first := "sqltest"
	switch {
	case isSet("SQLTEST_KEEP"):
		first = "sqltest_keep"
	case s.inst != nil || s.own:
		first = "sqltest_run"
	}
	return fmt.Sprintf("%s_%s_%s_%d", first, strconv.FormatInt(time.Now().Unix(), 36), ownMark, serial.Add(1))
}

// trialSuffix is that of the copy with which MySQL and MariaDB try a template.
const trialSuffix = "_trial"

var (
	testName     = regexp.MustCompile(`^sqltest_[0-9a-z]+_([0-9a-z]{10})_[0-9]+$`)
	templateName = regexp.MustCompile(`^(sqltest_template_[0-9a-f]{20})(` + trialSuffix + `)?$`)
)

// lockOf returns the name of the lock that the process with this mark holds.
func lockOf(mark string) string { return "sqltest_" + mark }

// presence is the session that shows to the other processes on a server that this one is alive.
type presence struct {
	server
	pool *sql.DB
	conn *sql.Conn
}

// announce locks this process's mark, and drops what dead processes have left. An error is about the lock: what cannot be
// dropped now is left to the next process.
func (s server) announce(ctx context.Context) (p presence, err error) {
	p.server = s
	if p.pool, err = s.product.open(s.record.DSN); err != nil {
		return p, err
	}
	defer func() {
		if err != nil {
			p.end()
		}
	}()
	if p.conn, err = p.pool.Conn(ctx); err != nil {
		return p, err
	}
	c := s.product.copier()
	if err := c.stay(ctx, p.conn); err != nil {
		return p, err
	}
	// The session that this process has ended before may not have noticed yet.
	err = await(ctx, 2*time.Millisecond, func() (bool, error) { return c.tryLock(ctx, p.conn, lockOf(ownMark)) })
	if err == nil {
		_ = p.sweep(ctx, c)
	}
	return p, err
}

// end gives the lock up.
func (p presence) end() {
	if p.conn != nil {
		_ = p.conn.Close()
	}
	if p.pool != nil {
		_ = p.pool.Close()
	}
}

// unusedDays is for how long a template stays that nobody uses.
const unusedDays = 30

// sweep drops the databases and users of processes that are gone, and templates that have not been used for a long time. On a
// node of a cluster it drops nothing: processes that are connected to another node would seem to be gone.
func (p presence) sweep(ctx context.Context, c copier) error {
	if clustered, err := c.clustered(ctx, p.conn); clustered || err != nil {
		return err
	}
	names, err := c.databases(ctx, p.conn)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		if found := testName.FindStringSubmatch(name); found != nil {
			if held, err := c.isLocked(ctx, p.conn, lockOf(found[1])); held || err != nil {
				continue
			}
			errs = append(errs, p.dropUnused(ctx, name))
			continue
		}
		if days, err := c.unused(ctx, p.conn, name); err == nil && days > unusedDays && templateName.MatchString(name) {
			errs = append(errs, p.dropUnused(ctx, name))
			continue
		}
		lock, ok := c.lockOfBuilding(ctx, p.conn, name)
		if !ok {
			continue
		}
		if locked, err := c.tryLock(ctx, p.conn, lock); !locked || err != nil {
			continue
		}
		if _, err := c.find(ctx, p.conn, name); errors.Is(err, sql.ErrNoRows) {
			errs = append(errs, p.dropUnused(ctx, name))
		}
		errs = append(errs, c.unlock(ctx, p.conn, lock))
	}
	users, err := p.product.users(ctx, p.conn)
	errs = append(errs, err)
	for _, name := range users {
		if found := userName.FindStringSubmatch(name); found != nil {
			if held, err := c.isLocked(ctx, p.conn, lockOf(found[1])); !held && err == nil {
				errs = append(errs, p.product.dropUser(ctx, p.pool, name))
			}
		}
	}
	return errors.Join(errs...)
}

// dropUnused drops a database unless it has sessions.
func (p presence) dropUnused(ctx context.Context, name string) error {
	used, err := p.product.sessions(ctx, p.pool, name)
	if err != nil || len(used) > 0 {
		return err
	}
	return p.product.drop(ctx, p.pool, name)
}
