package leasetable

import (
	"context"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/sqllock/sqllock/schema"
)

// noteWaiter notes in the row of a held name, for the given time, that somebody waits for it since then. An earlier
// note stays. It reports false if the name is free, or its row is locked.
func (s *store) noteWaiter(ctx context.Context, name string, since int64, within time.Duration) (noted bool, err error) {
	rows, err := s.change(ctx, &s.work, noteWaiter, []byte(name), since, within.Microseconds())
	return rows > 0, err
}

// removeWaiter removes the note of the waiter that waits since then, unless the row is locked: the note expires.
func (s *store) removeWaiter(ctx context.Context, name string, since int64) error {
	_, err := s.change(ctx, &s.work, removeWaiter, []byte(name), since)
	return err
}

// noteExclusiveWaiter keeps others from taking permits of a name for us microseconds; nil ends that.
func (s *store) noteExclusiveWaiter(ctx context.Context, name string, us any) error {
	_, err := s.change(ctx, &s.work, noteExclusiveWaiter, row{[]byte(name)}, us)
	return err
}

// mayNotify reports whether releases notify waiters of other processes, unless a pooler is in between.
func (s *store) mayNotify() bool { return s.dialect == schema.Postgres }

// notifies reports whether releases notify waiters of other processes.
func (s *store) notifies() bool { return s.mayNotify() && !s.work.pooler.Load() }

// channel is the channel that releases notify on PostgreSQL if another process waits; see release.sql. The payload is
// since when the longest waiter has waited, and the name in hex.
const channel = "sqllock"

// errUnsupportedNotify is the error of a subscription behind a pooler, or with a driver other than pgx.
var errUnsupportedNotify = errors.New("nothing is heard on this connection")

// subscription receives the releases of names on PostgreSQL, on a connection of its own.
type subscription struct {
	conn driver.Conn
	wait func(ctx context.Context) (payload string, err error)
}

// subscribe opens a connection and makes it listen. It notifies that connection itself: the first release that arrives
// has no name. It refuses to listen through a pooler, which would give the session that listens to other clients.
func (s *store) subscribe(ctx context.Context) (*subscription, error) {
	connecting, connected := context.WithTimeout(ctx, connectTimeout)
	defer connected()
	dc, err := s.elsewhere.Connect(connecting)
	if err != nil {
		return nil, err
	}
	err = once(ctx, attemptTimeout, func(ctx context.Context) error {
		direct, err := isDirect(ctx, dc)
		if err == nil && !direct {
			return errUnsupportedNotify
		}
		for _, text := range []string{"LISTEN " + channel, "NOTIFY " + channel} {
			if err == nil {
				err = execOn(ctx, dc, text)
			}
		}
		return err
	})
	if err != nil {
		_ = dc.Close() // the first error says more
		return nil, err
	}
	return &subscription{conn: dc, wait: waiterOf(dc)}, nil
}

// next waits for the release of a name, and returns since when the longest waiter has waited for it.
func (s *subscription) next(ctx context.Context) (name string, since int64, err error) {
	payload, err := s.wait(ctx)
	if err != nil {
		return "", 0, err
	}
	number, text, _ := strings.Cut(payload, " ")
	since, err = strconv.ParseInt(number, 10, 64)
	decoded, errName := hex.DecodeString(text)
	if err != nil || errName != nil { // our own notification, or another program's
		return "", 0, nil
	}
	return string(decoded), since, nil
}

// close closes the connection.
func (s *subscription) close() { _ = s.conn.Close() }
