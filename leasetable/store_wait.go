package leasetable

import (
	"context"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/sqllock/sqllock/schema"
)

// noteWaiter notes in the row of a held name, for the given time, that somebody waits for it since then. An earlier
// note stays. It reports false if the name is free, or its row is locked.
func (s *store) noteWaiter(ctx context.Context, name string, since int64, within time.Duration) (noted bool, err error) {
	rows, err := s.change(ctx, s.work, noteWaiter, []byte(name), since, within.Microseconds())
	return rows > 0, err
}

// removeWaiter removes the note of the waiter that waits since then, unless the row is locked: the note expires.
func (s *store) removeWaiter(ctx context.Context, name string, since int64) error {
	_, err := s.change(ctx, s.work, removeWaiter, []byte(name), since)
	return err
}

// noteExclusiveWaiter keeps others from taking permits of a name for us microseconds; nil ends that.
func (s *store) noteExclusiveWaiter(ctx context.Context, name string, us any) error {
	_, err := s.change(ctx, s.work, noteExclusiveWaiter, row{[]byte(name)}, us)
	return err
}

// mayNotify reports whether releases notify waiters of other processes, unless a pooler is in between.
func (s *store) mayNotify() bool { return s.dialect == schema.Postgres }

// notifies reports whether releases notify waiters of other processes.
func (s *store) notifies() bool { return s.mayNotify() && !s.behindPooler() }

// channel is the channel that releases notify on PostgreSQL if another process waits; see release.sql. The payload is
// since when the longest waiter has waited, and the name in hex.
const channel = "sqllock"

// subscription receives the releases of names.
type subscription struct{ *listener }

// subscribe opens a connection that receives the releases of names. It notifies that connection itself: the first
// release that arrives has no name.
func (s *store) subscribe(ctx context.Context) (subscription, error) {
	l, err := s.listen(ctx, channel)
	return subscription{l}, err
}

// next waits for the release of a name, and returns since when the longest waiter has waited for it.
func (s subscription) next(ctx context.Context) (name string, since int64, err error) {
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
