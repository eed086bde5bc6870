package mysql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/cluster"
	"github.com/sqllock/sqllock/internal/connector"
	"github.com/sqllock/sqllock/internal/refusal"
	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/version"
)

// open connects, refuses a server that would not keep a lock, and sets up the session.
func (l *Locker) open(ctx context.Context) (session.Conn[string], error) {
	connecting, socket := withSocket(ctx)
	sc, err := l.db.Conn(connecting)
	if err != nil {
		if tooMany(err) {
			return nil, &session.LimitError{Err: err, OfServer: true}
		}
		return nil, &session.UnavailableError{Err: err, Permanent: notLetIn(err, l.connected.Load())}
	}
	l.connected.Store(true)
	c := newConn(sc, socket)
	if err := c.setUp(ctx, l.ttl, l.wide, &l.mariadb); err != nil {
		c.Close()
		broken := c.Broken(err) && !errors.Is(err, sqllock.ErrRefused) && !errors.Is(err, sqllock.ErrUnsupported)
		err = fmt.Errorf("set up a MySQL session: %w", err)
		switch {
		case tooMany(err):
			err = &session.LimitError{Err: err, OfServer: true}
		case broken:
			err = &session.UnavailableError{Err: err}
		}
		return nil, err
	}
	return c, nil
}

// notLetIn reports whether the server does not admit this client until something is changed, or the client and the server
// do not agree on how to connect. before reports whether this Locker was admitted before.
func notLetIn(err error, before bool) bool {
	for _, final := range []error{gomysql.ErrNoTLS, gomysql.ErrOldPassword, gomysql.ErrCleartextPassword, gomysql.ErrNativePassword, gomysql.ErrUnknownPlugin} {
		if errors.Is(err, final) {
			return true
		}
	}
	return connector.NotLetIn(err, before)
}

// tooMany reports whether the server has no connection left, or none for the user, or room for no more prepared
// statements.
func tooMany(err error) bool {
	const (
		tooManyConnections     = 1040
		tooManyStatements      = 1461
		tooManyUserConnections = 1203
		userLimitReached       = 1226
	)
	return isOneOf(err, tooManyConnections, tooManyStatements, tooManyUserConnections, userLimitReached)
}

func isOneOf(err error, numbers ...uint16) bool {
	var answer *gomysql.MySQLError
	return errors.As(err, &answer) && slices.Contains(numbers, answer.Number)
}

// setUp makes sure that the session can be trusted with locks, and prepares it (I49).
func (c *conn) setUp(ctx context.Context, ttl time.Duration, wide bool, mariadb *atomic.Bool) error {
	if _, err := c.sc.ExecContext(ctx, modesSQL); err != nil {
		return err
	}
	variables, err := cluster.Read(ctx, c.sc, probeSQL)
	if err != nil {
		return err
	}
	if err := refuse(variables); err != nil {
		return err
	}
	mariadb.Store(strings.Contains(variables["version"], "MariaDB"))
	if err := c.sc.QueryRowContext(ctx, sessionSQL).Scan(&c.id, &c.database); err != nil {
		return err
	}
	if wide {
		c.database = ""
	}
	c.ttl = ttl
	seconds := int64((ttl + time.Second - 1) / time.Second)
	if _, err := c.sc.ExecContext(ctx, ttlSQL, seconds); err != nil {
		return err
	}
	if c.getLock, err = c.prepare(ctx, getLockSQL); err != nil {
		return err
	}
	if c.releaseLock, err = c.prepare(ctx, releaseLockSQL); err != nil {
		return err
	}
	if c.many, err = c.prepare(ctx, manySQL); err != nil {
		return err
	}
	return c.watch()
}

const useLease = "use a lease (package leasetable)"

// refuse refuses a server with these variables if GET_LOCK would not exclude others there (I49).
func refuse(variables map[string]string) error {
	set := func(name string) bool { return isSet(variables[name]) }
	_, older := version.OlderMySQL(variables["version"])
	kind := cluster.Of(variables)
	relative := version.Relative(variables["version"] + " " + variables["version_comment"])
	switch {
	case relative != "":
		return &refusal.Error{
			Seen:    "the server is " + relative + ", on which session locks were never tried: its GET_LOCK may not be that of MySQL",
			Instead: "try leases (package leasetable) before you rely on them",
		}
	case older:
		return &refusal.Error{
			Seen:    "the server is older than MySQL 8.0.22 and MariaDB 10.6, and lacks what the statements need: " + variables["version"],
			Instead: "use a later one, or " + useLease,
		}
	case kind == cluster.Galera:
		return refusedGalera("a Galera node (wsrep_provider)")
	case kind == cluster.GroupReplication:
		return &refusal.Error{
			Seen:    "the server is a member of a replication group, and GET_LOCK is known to this member only",
			Instead: useLease,
		}
	case set("read_only"), set("innodb_read_only"):
		return errReadOnly
	}
	return nil
}

// prohibited refuses a node of Percona XtraDB Cluster that err is from, with pxc_strict_mode = ENFORCING.
func prohibited(err error) error {
	const unknown = 1105
	if isOneOf(err, unknown) && strings.Contains(err.Error(), "Percona-XtraDB-Cluster prohibits") {
		return &session.LastingRefusalError{Refused: refusedGalera("a node of Percona XtraDB Cluster (" + err.Error() + ")")}
	}
	return err
}

// refusedGalera refuses a Galera node.
func refusedGalera(seen string) *refusal.Error {
	return &refusal.Error{
		Seen:    "the server is " + seen + ", and GET_LOCK is known to this node only",
		Instead: useLease,
	}
}

// errReadOnly refuses a read-only server, which may be the primary soon.
var errReadOnly = &session.PassingRefusalError{Refused: &refusal.Error{
	Seen:    "the server is read-only, and so probably a replica whose locks its primary does not know",
	Instead: "connect to the primary",
}}

func isSet(variable string) bool {
	return variable != "" && variable != "0" && !strings.EqualFold(variable, "OFF")
}
