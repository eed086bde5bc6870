package leasetable_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// Concurrent requests share one statement, and each request gets its own result.
func TestNamesThatAreAskedForTogetherAreEachTheirOwn(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l, other := newLocker(t, db.DB), newLocker(t, db.DB)
		const names, rounds = 90, 5
		for round := range rounds {
			var all sync.WaitGroup
			leases := make([]*leasetable.Lease, names)
			for i := range names {
				name := fmt.Sprint(i)
				if i%3 == 0 && round == 0 {
					take(t, other, name)
				}
				all.Go(func() {
					var opts []sqllock.Option
					if i%2 == 0 {
						opts = append(opts, sqllock.WithTTL(time.Minute)) // on another lease
					}
					lock, err := l.TryAcquire(t.Context(), name, opts...)
					switch {
					case i%3 == 0 && !errors.Is(err, sqllock.ErrHeld):
						t.Errorf("a name that is held: %v", err)
					case i%3 != 0 && err != nil:
						t.Error(err)
					case err == nil:
						leases[i] = lock
						if token := lock.Token(); token != int64(round+1) {
							t.Errorf("round %d has token %d", round, token)
						}
					}
				})
			}
			all.Wait()
			if t.Failed() {
				return
			}
			lost := ""
			if round == rounds-1 {
				lost = "1"
				if _, err := other.ForceRelease(t.Context(), lost); err != nil {
					t.Fatal(err)
				}
			}
			for _, lock := range leases {
				if lock == nil {
					continue
				}
				all.Go(func() {
					if err := lock.Release(t.Context()); errors.Is(err, sqllock.ErrLost) != (lock.Name() == lost) {
						t.Errorf("Release of %s: %v", lock.Name(), err)
					}
				})
			}
			all.Wait()
		}
	})
}

// A row that is locked by a long transaction delays its own name only.
func TestALockedRowDelaysNobodyElse(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB)
		for _, name := range []string{"a", "b"} {
			if err := take(t, l, name).Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		held := take(t, l, "b")
		tx, err := db.Beginx()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		for _, name := range []string{"a", "b"} {
			var token int64
			if err := tx.GetContext(t.Context(), &token, tx.Rebind("SELECT token FROM sqllock_lock WHERE name = ? FOR UPDATE"), []byte(name)); err != nil {
				t.Fatal(err)
			}
		}
		stuck := make(chan error, 2)
		go func() {
			lock, err := l.Acquire(context.Background(), "a")
			if err == nil {
				err = lock.Release(context.Background())
			}
			stuck <- err
		}()
		go func() { stuck <- releaseOrGiveUp(context.Background(), held) }()
		var others sync.WaitGroup
		for i := range 100 {
			others.Go(func() {
				lock, err := l.Acquire(t.Context(), fmt.Sprint(i))
				if err == nil {
					err = lock.Release(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		others.Wait()
		select {
		case err := <-stuck:
			if !errors.Is(err, errGaveUp) {
				t.Fatalf("a locked row was changed: %v", err)
			}
			stuck <- nil
		default:
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		for range cap(stuck) {
			if err := receive(t, stuck); err != nil && !errors.Is(err, errGaveUp) {
				t.Error(err)
			}
		}
	})
}

// If the response to a shared statement is lost, no name stays held.
func TestASharedStatementWhoseAnswerIsLostLeavesNothingHeld(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		p, l := newLockerThrough(t, db, leasetable.WithTTL(time.Hour))
		other := newLocker(t, db.DB)
		if err := take(t, l, "connected").Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		const names = 40
		for spared := range 3 { // on MySQL and MariaDB a statement reads before another one acquires
			p.spare = spared
			p.loseAnswerTo(hex.EncodeToString([]byte("unanswered")))
			var all sync.WaitGroup
			leases := make([]*leasetable.Lease, names)
			for i := range names {
				all.Go(func() {
					var err error
					leases[i], err = l.TryAcquire(t.Context(), fmt.Sprint("unanswered ", i))
					if err != nil && !sqllock.IsRetryable(err) {
						t.Error(err)
					}
				})
			}
			all.Wait()
			lost := 0
			for i, lock := range leases {
				name := fmt.Sprint("unanswered ", i)
				if lock == nil {
					lost++
					if err := take(t, other, name).Release(t.Context()); err != nil { // long before the lease expires
						t.Error(err)
					}
					continue
				}
				mustBeHeld(t, other, name)
				if err := lock.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
			t.Logf("%d answers lost, %d names asked for in vain", p.answersLost(), lost)
		}
	})
}

// If callers leave before the response to a shared statement arrives, the names that it acquired are released again.
// I19.
func TestCallersWhoLeaveASharedStatementHoldNothing(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		p, l := newLockerThrough(t, db, leasetable.WithTTL(time.Hour))
		other := newLocker(t, db.DB)
		take(t, l, "kept")
		const names = 40
		// Spare the inline statement of the first caller and, on MySQL and MariaDB, a statement that reads before
		// another one acquires.
		for spared := range 4 {
			p.spare = spared
			passOn := p.delayAnswerTo(hex.EncodeToString([]byte("late")))
			ctx, leave := context.WithCancel(t.Context())
			var all sync.WaitGroup
			locks := make([]*leasetable.Lease, names)
			for i := range names {
				all.Go(func() {
					var err error
					locks[i], err = l.TryAcquire(ctx, fmt.Sprint("late ", i))
					if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, sqllock.ErrHeld) { // held for a caller that has left
						t.Error(err)
					}
				})
			}
			everybody := make(chan struct{})
			go func() {
				all.Wait()
				close(everybody)
			}()
			eventually(t, func() bool {
				select {
				case <-everybody: // on PostgreSQL: all were inline, so the name was sent as it is, not in hex
					return true
				default:
					return !p.isArmed()
				}
			})
			leave()
			<-everybody // before the response arrives
			passOn()
			for i := range names {
				if locks[i] != nil {
					if err := locks[i].Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
				if err := take(t, other, fmt.Sprint("late ", i)).Release(t.Context()); err != nil { // long before the lease expires
					t.Error(err)
				}
			}
		}
	})
}

func TestASharedReleaseWhoseAnswerIsLostIsRepeated(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		p, l := newLockerThrough(t, db, leasetable.WithTTL(time.Hour))
		other := newLocker(t, db.DB)
		const names = 40
		statements := map[sqltest.Engine]int{
			sqltest.EnginePostgres: 1, // the first is inline, with its name as it is, not in hex
			sqltest.EngineMariaDB:  2,
			sqltest.EngineMySQL:    3, // one reads before another one releases
		}[db.Engine]
		for spared := range statements {
			leases := make([]*leasetable.Lease, names)
			for i := range leases {
				leases[i] = take(t, l, fmt.Sprint("unanswered ", i))
			}
			p.spare = spared
			p.loseAnswerTo(hex.EncodeToString([]byte("unanswered")))
			var all sync.WaitGroup
			for _, lease := range leases {
				all.Go(func() {
					if err := lease.Release(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			if p.answersLost() != spared+1 {
				t.Errorf("%d answers lost", p.answersLost())
			}
			for _, lease := range leases {
				if next := take(t, other, lease.Name()); next.Token() != lease.Token()+1 || next.Release(t.Context()) != nil {
					t.Errorf("token %d after %d", next.Token(), lease.Token())
				}
			}
		}
	})
}

// On MySQL one statement acquires many names, and another one reads which, if others have acquired some just before. If
// the second statement is refused, the names are released again. I17.
func TestNamesThatWereTakenTogetherAndNotToldAreGivenBack(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		if db.Engine == sqltest.EnginePostgres {
			t.Skip("here it is one statement")
		}
		l, other := newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), newLocker(t, db.DB)
		take(t, l, "kept")
		const names = 40
		for i := range names {
			lock := take(t, other, fmt.Sprint(i))
			if i%2 == 0 {
				continue
			}
			if err := lock.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		leasetable.Spoil(l)
		var all sync.WaitGroup
		for i := range names {
			all.Go(func() {
				if lock, err := l.TryAcquire(t.Context(), fmt.Sprint(i)); err == nil {
					err = lock.Release(t.Context())
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		for i := 1; i < names; i += 2 {
			take(t, other, fmt.Sprint(i)) // long before the lease expires
		}
	})
}

// While another process writes to an SQLite file, a statement for several names does nothing, and is repeated.
func TestLocksThatAreReleasedTogetherWhileTheFileIsBusyAreNotLost(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := withTables(t, sqltest.SQLite(t))
	counted, statements := counting(t, db)
	l, other := newLocker(t, counted), newLocker(t, db.DB)
	names := []string{"a", "b", "c", "d"}
	var locks []*leasetable.Lease
	for _, name := range names {
		locks = append(locks, take(t, l, name))
	}
	writer, err := db.Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	if _, err := writer.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	before := statements.n.Load()
	var all sync.WaitGroup
	for _, lock := range locks {
		all.Go(func() {
			if err := releaseOrGiveUp(t.Context(), lock); err != nil && !errors.Is(err, errGaveUp) {
				t.Error(err)
			}
		})
	}
	eventually(t, func() bool { return statements.n.Load() >= before+6 }) // each waits for the file for a while
	if _, err := writer.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	for _, name := range names {
		take(t, other, name)
	}
}
