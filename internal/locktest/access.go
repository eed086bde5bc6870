package locktest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
)

// Secret is a password that must not appear in any error.
const Secret = "s3cr3t"

func noPassword(t *testing.T, s sessions) {
	own := s.Access(t).Password
	for name, test := range map[string]struct {
		access    Access
		retryable bool
	}{
		"wrong password":   {Access{Password: Secret}, false},
		"unknown user":     {Access{User: "nobody", Password: Secret}, false},
		"unknown database": {Access{Database: "nowhere"}, false},
		"closed port":      {Access{Password: Secret, Address: closedPort}, true},
	} {
		l := open(t, s, Settings{DSN: s.DSN(t, test.access)})
		_, err := l.TryAcquire(bounded(t), "a")
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		if strings.Contains(err.Error(), Secret) || own != "" && strings.Contains(err.Error(), own) {
			t.Errorf("%s: the error contains the password: %v", name, err)
		}
		if got := sqllock.IsRetryable(err); got != test.retryable {
			t.Errorf("%s: IsRetryable(%v) = %t", name, err, got)
		}
		wait := soon
		if test.retryable { // the wait lasts until the deadline
			wait = shortly
		}
		_, err = l.Acquire(endingIn(t, wait), "a")
		// On a busy machine the first attempt may not even have begun.
		for ; test.retryable && !sqllock.IsRetryable(err) && wait < soon; wait *= 2 {
			_, err = l.Acquire(endingIn(t, wait), "a")
		}
		if err == nil || errors.Is(err, context.DeadlineExceeded) != test.retryable || sqllock.IsRetryable(err) != test.retryable {
			t.Errorf("%s: Acquire: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), Secret) {
			t.Errorf("%s: the error of Acquire contains the password: %v", name, err)
		}
	}
}

func malformedDSN(t *testing.T, s sessions) {
	for _, dsn := range s.server.Malformed {
		l, err := s.New(Settings{DSN: dsn})
		if err == nil {
			_ = l.Close()
			t.Errorf("the DSN %q: no error", dsn)
			continue
		}
		for e := err; e != nil; e = errors.Unwrap(e) {
			if strings.Contains(e.Error(), Secret) {
				t.Errorf("the error contains the password: %v", e)
			}
		}
	}
}

// doNotConnect checks that a call with a dead context sends nothing: it does not even open a connection.
func doNotConnect(t *testing.T, s sessions) {
	l := open(t, s, Settings{DSN: s.DSN(t, Access{Address: closedPort})})
	_, err := l.TryAcquire(deadContext(t), "a")
	var unavailable interface{ Retryable() bool }
	if !errors.Is(err, errGone) || errors.As(err, &unavailable) {
		t.Errorf("TryAcquire = %v", err)
	}
}

// closedPort is an address without a listener. No program gets that port by chance.
const closedPort = "127.0.0.1:1"

// freeAddress returns an address without a listener. Another program may get it.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// LeftWhole holds a lock for longer than most time limits while another Locker waits for it. Both Lockers use a DSN
// whose settings could affect the holder or the waiter. On a busy machine a time limit of the server can hit a session
// before it is set up; LeftWhole then tries again.
func LeftWhole(t *testing.T, db Database, dsn, name string) {
	t.Helper()
	holder, waiter := open(t, db, Settings{DSN: dsn}), open(t, db, Settings{DSN: dsn})
	var lock sqllock.Lock
	mustAtLast(t, nil, func(ctx context.Context) (err error) {
		lock, err = holder.TryAcquire(ctx, name)
		return err
	})
	mustAtLast(t, sqllock.ErrHeld, func(ctx context.Context) error {
		_, err := waiter.TryAcquire(ctx, name)
		return err
	})
	mustAtLast(t, context.DeadlineExceeded, func(ctx context.Context) error {
		_, err := waiter.Acquire(ctx, name)
		if !errors.Is(err, sqllock.ErrHeld) {
			return fmt.Errorf("nobody was seen to hold the lock: %v", err) //nolint:errorlint // it must not match
		}
		return err
	})
	MustLive(t, lock)
	MustRelease(t, lock)
	mustAtLast(t, nil, func(ctx context.Context) error {
		lock, err := waiter.Acquire(ctx, name)
		if err == nil {
			MustRelease(t, lock)
		}
		return err
	})
}

// mustAtLast calls do several times, each time for longer than most time limits, until it returns the wanted error.
func mustAtLast(t *testing.T, want error, do func(ctx context.Context) error) {
	t.Helper()
	for d := 1500 * time.Millisecond; ; d *= 2 {
		err := do(endingIn(t, d))
		if errors.Is(err, want) {
			return
		}
		if d > soon {
			t.Fatalf("the error is %v; want %v", err, want)
		}
	}
}

// SmallPool opens a pool of one connection.
func SmallPool(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	small, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = small.Close() })
	small.SetMaxOpenConns(1)
	return small
}

// BusyPool opens a pool of one connection, which is in a transaction until the test ends.
func BusyPool(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	small := SmallPool(t, driver, dsn)
	tx, err := small.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return small
}

// address finds the address of the server in a DSN of sqltest.
var address = regexp.MustCompile(`[@(]([^@()/]+:[0-9]+)[)/]`)

// AddressIn returns the address of the server that a DSN of sqltest names.
func AddressIn(dsn string) string { return address.FindStringSubmatch(dsn)[1] }
