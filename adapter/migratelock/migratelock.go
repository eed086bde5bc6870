package migratelock

import (
	"context"
	"errors"
	"io"
	"reflect"
	"sync"
	"time"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"

	"github.com/sqllock/sqllock"
)

// Wrap returns d with the lock called name, taken from l, instead of d's own. l is a *pg.Locker, a *mysql.Locker or a
// *leasetable.Locker, which the caller closes when migrate has finished. The options are those of the acquisition.
//
// Lock waits until a second before migrate.DefaultLockTimeout, which is 15 s unless the program changes it, or for half of
// it if that is longer. If the LockTimeout of a Migrate is set, set DefaultLockTimeout to the same value.
// sqllock.WithWait makes Lock wait for less. After an error nothing is held.
//
//   - If another process has the lock, the error matches database.ErrLocked and sqllock.ErrHeld, and is a
//     *sqllock.HeldError that names the holder.
//   - If this driver has the lock already, it is database.ErrLocked, at once.
//   - If the lock was granted only after that time, as when the process was stalled, or after Close, Lock releases it. The
//     error then matches database.ErrLocked, or says that the driver was closed. If the release fails, its error is added,
//     and the lock ends as its package documents.
//   - Any other error is that of l's Acquire, such as that the database cannot be reached.
//
// When the lock was lost, Run, SetVersion and Drop do nothing and return the cause: sqllock.ErrLost or sqllock.ErrExpired.
// If it was lost meanwhile, they return the cause beside their own error. Unlock returns the loss, or the error of a
// release that the database has not confirmed; the driver is unlocked in each case. The package of the lock documents
// what then ends it.
//
// Close releases the lock if it is held. Open wraps what d opens. If l is nil, Lock returns an error.
func Wrap[L sqllock.Lock](d database.Driver, l sqllock.Acquirer[L], name string, opts ...sqllock.Option) database.Driver {
	wrapped := &driver{Driver: d, name: name, opts: opts}
	if v := reflect.ValueOf(l); v.IsValid() && (v.Kind() != reflect.Pointer || !v.IsNil()) {
		wrapped.locks = sqllock.AnyKind(l)
	}
	return wrapped
}

type driver struct {
	database.Driver
	locks sqllock.Locker // nil if there is none
	name  string
	opts  []sqllock.Option

	mu     sync.Mutex
	locked bool         // by Lock, which may still wait; guarded by mu
	held   sqllock.Lock // nil if nothing is held; guarded by mu
	closed bool         // by Close; guarded by mu

	running sync.RWMutex // read-locked by what runs under the lock; Close waits for it
}

var (
	// errTimeout is why Lock gives up.
	errTimeout = errors.New("migratelock: migrate's lock timeout is about to pass")
	// errClosed is why Lock gives back what it has acquired after Close: nobody would release it.
	errClosed = errors.New("migratelock: the driver was closed")
)

func (d *driver) Open(url string) (database.Driver, error) {
	opened, err := d.Driver.Open(url)
	if err != nil {
		return nil, err
	}
	return &driver{Driver: opened, locks: d.locks, name: d.name, opts: d.opts}, nil
}

func (d *driver) Lock() error {
	if !d.begin() {
		return database.ErrLocked
	}
	returned := false
	defer func() {
		if !returned { // a hook, or a driver, has panicked or ended the goroutine: nothing is held
			d.keep(nil)
		}
	}()
	held, err := d.acquire()
	returned = true
	if !d.keep(held) {
		return d.giveBack(held, errClosed)
	}
	return err
}

// begin makes the driver locked, and reports whether it was not.
func (d *driver) begin() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	was := d.locked
	d.locked = true
	return !was
}

// keep ends what begin began: the driver holds held, or nothing if that is nil. It reports false, and the driver holds
// nothing, if there is a lock and the driver is closed.
func (d *driver) keep(held sqllock.Lock) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if held != nil && d.closed {
		d.locked = false
		return false
	}
	d.held, d.locked = held, held != nil
	return true
}

func (d *driver) acquire() (sqllock.Lock, error) {
	if d.locks == nil {
		return nil, &sqllock.OpError{Op: "acquire", Name: d.name, Err: errors.New("the Locker that was given to migratelock.Wrap is nil")}
	}
	// migrate passes no context. It abandons the call of Lock after its timeout, whatever that call acquires later.
	timeout := max(migrate.DefaultLockTimeout-time.Second, migrate.DefaultLockTimeout/2)
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(context.Background(), timeout, errTimeout)
	defer cancel()
	held, err := d.locks.Acquire(ctx, d.name, d.opts...)
	switch {
	case errors.Is(err, sqllock.ErrHeld):
		return nil, errors.Join(database.ErrLocked, err)
	case err != nil:
		return nil, err
	case time.Since(began) >= timeout: // the process was stalled, and migrate may have abandoned the call
		return nil, errors.Join(database.ErrLocked, d.giveBack(held, errTimeout))
	}
	return held, nil
}

// giveBack releases a lock that Lock does not return, because of cause.
func (d *driver) giveBack(held sqllock.Lock, cause error) error {
	return errors.Join(&sqllock.OpError{Op: "acquire", Name: d.name, Err: cause}, held.Release(context.Background()))
}

func (d *driver) Unlock() error {
	held := d.take()
	if held == nil {
		return database.ErrNotLocked
	}
	return held.Release(context.Background())
}

// take returns the lock, if it is held, and makes the driver unlocked.
func (d *driver) take() sqllock.Lock {
	d.mu.Lock()
	defer d.mu.Unlock()
	held := d.held
	if held != nil {
		d.held, d.locked = nil, false
	}
	return held
}

// Close implements database.Driver. It releases the lock when the migration that is under way has finished; no other one
// can begin on a closed driver. A Lock that still waits gives back what it acquires.
func (d *driver) Close() error {
	err := d.Driver.Close()
	d.running.Lock()
	defer d.running.Unlock()
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	if held := d.take(); held != nil {
		err = errors.Join(held.Release(context.Background()), err)
	}
	return err
}

func (d *driver) Run(migration io.Reader) error {
	return d.whileHeld("run a migration", func() error { return d.Driver.Run(migration) })
}

func (d *driver) SetVersion(version int, dirty bool) error {
	return d.whileHeld("set the version", func() error { return d.Driver.SetVersion(version, dirty) })
}

func (d *driver) Drop() error {
	return d.whileHeld("drop", func() error { return d.Driver.Drop() })
}

// whileHeld calls f unless the lock was lost, and returns the loss if it was lost meanwhile. Without a lock, which is how
// some callers use a driver, it just calls f.
func (d *driver) whileHeld(what string, f func() error) error {
	d.running.RLock()
	defer d.running.RUnlock()
	d.mu.Lock()
	held := d.held
	d.mu.Unlock()
	if held == nil {
		return f()
	}
	if loss := d.loss(held, what); loss != nil {
		return loss
	}
	err := f()
	if loss := d.loss(held, what); loss != nil {
		return errors.Join(err, loss)
	}
	return err
}

// loss returns an error with the cause if the lock has ended.
func (d *driver) loss(held sqllock.Lock, what string) error {
	if cause := context.Cause(held.Context()); cause != nil {
		return &sqllock.OpError{Op: what, Name: d.name, Err: cause}
	}
	return nil
}
