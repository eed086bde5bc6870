package leasetable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/leasetable/internal/memory"
	"github.com/sqllock/sqllock/sqltest"
)

// mustSay checks that an error matches a sentinel, and says on one line, and once, what was to be done and to which lock.
func mustSay(t *testing.T, what string, err, sentinel error, name string) {
	t.Helper()
	if !errors.Is(err, sentinel) {
		t.Errorf("%s: %v; want %v", what, err, sentinel)
		return
	}
	text := err.Error()
	if strings.Count(text, "sqllock: ") != 1 || strings.Contains(text, "leasetable: ") || strings.Count(text, name) != 1 || strings.Contains(text, "\n") {
		t.Errorf("%s says %q", what, text)
	}
}

func TestEveryMethodOfALeaseThatIsOverSaysWhy(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		ctx := t.Context()
		methods := map[string]func(*leasetable.Lease) error{
			"release":  func(le *leasetable.Lease) error { return le.Release(ctx) },
			"verify":   func(le *leasetable.Lease) error { return le.Verify(ctx) },
			"extend":   func(le *leasetable.Lease) error { return le.Extend(ctx, time.Hour) },
			"metadata": func(le *leasetable.Lease) error { return le.SetMetadata(ctx, "x") },
			"export":   func(le *leasetable.Lease) error { _, err := le.Export(ctx, time.Minute); return err },
			"guard": func(le *leasetable.Lease) error {
				tx, err := db.BeginTx(ctx, nil)
				if err != nil {
					return err
				}
				defer func() { _ = tx.Rollback() }()
				return le.Guard(ctx, leasetable.SQLTx(tx))
			},
		}
		admin := newLocker(t, db.DB)
		for _, end := range []struct {
			how  string
			want error
			by   func(*leasetable.Locker, *leasetable.Lease) error
		}{
			{"released", sqllock.ErrReleased, func(_ *leasetable.Locker, le *leasetable.Lease) error { return le.Release(ctx) }},
			{"forced", sqllock.ErrLost, func(_ *leasetable.Locker, le *leasetable.Lease) error {
				_, err := admin.ForceRelease(ctx, le.Name())
				return err
			}},
			{"closed", sqllock.ErrClosed, func(l *leasetable.Locker, _ *leasetable.Lease) error { return l.Close() }},
		} {
			for method, call := range methods {
				if end.how == "released" && method == "release" { // returns what the first one did
					continue
				}
				l := newLocker(t, db.DB)
				name := "of " + end.how + " " + method
				le := take(t, l, name)
				if err := end.by(l, le); err != nil {
					t.Fatal(err)
				}
				err := call(le)
				mustSay(t, name, err, end.want, name)
				if end.how == "forced" && err != nil && !strings.Contains(err.Error(), "released by force") { // nobody took it
					t.Errorf("%s says %q", name, err)
				}
			}
		}
	})
}

func TestWhatAClosedLockerRefusesSaysNothingOfTheDatabase(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		for op, call := range map[string]func(context.Context) error{
			`inspect "x"`:              func(ctx context.Context) error { _, err := l.Inspect(ctx, "x"); return err },
			`list "x"`:                 func(ctx context.Context) error { _, err := l.List(ctx, "x"); return err },
			`force the release of "x"`: func(ctx context.Context) error { _, err := l.ForceRelease(ctx, "x"); return err },
			`purge "*"`:                func(ctx context.Context) error { _, err := l.Purge(ctx, 0); return err },
			`acquire "x"`:              func(ctx context.Context) error { _, err := l.TryAcquire(ctx, "x"); return err },
		} {
			if err := call(t.Context()); !errors.Is(err, sqllock.ErrClosed) || err.Error() != "sqllock: "+op+": locker is closed" {
				t.Errorf("%s: %v", op, err)
			}
		}
	})
}

func TestALeaderIsToldOfALossOnce(t *testing.T) {
	t.Parallel()
	errWork := errors.New("the work failed")
	for said, of := range map[string]func(work context.Context, lease *leasetable.Lease) error{
		"nothing":   func(context.Context, *leasetable.Lease) error { return nil },
		"its own":   func(context.Context, *leasetable.Lease) error { return errWork },
		"the cause": func(work context.Context, _ *leasetable.Lease) error { return context.Cause(work) },
		"it wrapped": func(work context.Context, _ *leasetable.Lease) error {
			return fmt.Errorf("work: %w", context.Cause(work))
		},
	} {
		t.Run(said, func(t *testing.T) {
			t.Parallel()
			told := func(t *testing.T, err, want error) {
				t.Helper()
				text := fmt.Sprint(err)
				n := strings.Count(text, sqllock.ErrLost.Error()) + strings.Count(text, sqllock.ErrExpired.Error())
				if n != 1 || !errors.Is(err, want) || said == "its own" && !errors.Is(err, errWork) {
					t.Errorf("Run: %v", err)
				}
			}
			t.Run("released by force", func(t *testing.T) {
				t.Parallel()
				onEvery(t, func(t *testing.T, db *sqltest.Database) {
					admin := newLocker(t, db.DB)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					told(t, newElector(t, newLocker(t, db.DB)).Run(ctx, func(work context.Context, lease *leasetable.Lease) error {
						if _, err := admin.ForceRelease(ctx, lease.Name()); err != nil {
							t.Error(err)
						}
						renewUntilLost(t, lease)
						<-work.Done()
						cancel()
						return of(work, lease)
					}), sqllock.ErrLost)
				})
			})
			t.Run("expired", func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := &scripted{Store: memory.NewServer(memory.Postgres).Store()}
					s.renew = func(context.Context, []byte) (bool, int64, error) { return false, 0, errCut }
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					told(t, newElector(t, keep(t, s)).Run(ctx, func(work context.Context, lease *leasetable.Lease) error {
						<-work.Done()
						cancel()
						return of(work, lease)
					}), sqllock.ErrExpired)
				})
			})
		})
	}
}
