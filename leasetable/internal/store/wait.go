package store

import (
	"context"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/conn"
)

// waits are the steps of waiters: notes in the row of a name, which decide nothing, and notifications.
type waits struct{ *database }

// NoteWaiter implements Waits.
func (s waits) NoteWaiter(ctx context.Context, name string, since int64, within time.Duration) (noted bool, err error) {
	rows, err := s.change(ctx, s.Work, noteWaiter, []byte(name), since, within.Microseconds())
	return rows > 0, err
}

// RemoveWaiter implements Waits.
func (s waits) RemoveWaiter(ctx context.Context, name string, since int64) error {
	_, err := s.change(ctx, s.Work, removeWaiter, []byte(name), since)
	return err
}

// NoteExclusiveWaiter implements Waits.
func (s waits) NoteExclusiveWaiter(ctx context.Context, name string, us any) error {
	_, err := s.change(ctx, s.Work, noteExclusiveWaiter, row{[]byte(name)}, us)
	return err
}

// channel is the channel that releases notify on PostgreSQL if another process waits; see release.sql. The payload is
// since when the longest waiter has waited, and the name in hex.
const channel = "sqllock"

// subscription receives the releases of names.
type subscription struct{ *conn.Listener }

// Subscribe implements Waits. It notifies the connection itself, once.
func (s waits) Subscribe(ctx context.Context) (Subscription, error) {
	l, err := s.Listen(ctx, channel)
	if err != nil {
		return nil, err
	}
	return subscription{l}, nil
}

// Next implements Subscription.
func (s subscription) Next(ctx context.Context) (name string, since int64, err error) {
	payload, err := s.Wait(ctx)
	if err != nil {
		return "", 0, err
	}
	number, text, _ := strings.Cut(payload, " ")
	since, err = strconv.ParseInt(number, 10, 64)
	decoded, errName := hex.DecodeString(text)
	if err != nil || errName != nil { // our own notification, or another program's
		return "", 0, nil //nolint:nilerr // see above
	}
	return string(decoded), since, nil
}
