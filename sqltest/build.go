package sqltest

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
)

// migrating bounds a migration, the wait for the one of another process, and a copy.
const migrating = 10 * time.Minute

// blueprint is what a copier needs to make databases: empty ones, or copies of a template.
type blueprint struct {
	name     string   // the template's database; empty for empty databases
	strategy string   // how PostgreSQL copies
	settings []string // what PostgreSQL does not copy
	objects  []object // what MySQL and MariaDB copy
	inexact  string   // why no copy is like the template; then the migration runs for every database

	resettable bool // reset can make a used copy like new
}

// object is one thing in a MySQL or MariaDB database, with what makes it again. Two objects are equal if they are alike.
type object struct {
	Kind, Name string
	DDL        string
	Mode       string // the sql_mode, and the next two, of the session that has made it
	Client     string
	Collation  string
	Zone       string // the time zone of an event
	Columns    string // of a table: those that are not generated
	Rows       int    // of a table
	Data       string // of a table: a hash of its rows
}

// copier makes and copies template databases on one kind of server.
//
// The lock that keeps two processes from making the same template is the server's own, on a session of its own. The locks
// of this module are not used, because their tests need this package.
type copier interface {
	// tryLock locks a name for the session of conn. Unlock unlocks it, and isLocked reports whether any session has it.
	tryLock(ctx context.Context, conn *sql.Conn, name string) (bool, error)
	unlock(ctx context.Context, conn *sql.Conn, name string) error
	isLocked(ctx context.Context, conn *sql.Conn, name string) (bool, error)
	// clustered reports whether the server is a node of a cluster, on which locks and sessions are known to their node only.
	clustered(ctx context.Context, conn *sql.Conn) (bool, error)
	// stay keeps the server from ending the session of conn because it is idle.
	stay(ctx context.Context, conn *sql.Conn) error

	// empty returns the blueprint of empty databases.
	empty(ctx context.Context, db *sql.DB) (blueprint, error)
	// find returns the blueprint of a template, or sql.ErrNoRows if it is not there, or not complete.
	find(ctx context.Context, db querier, name string) (blueprint, error)
	// building returns the database in which a template is built. It is also the name of the lock.
	building(ctx context.Context, conn *sql.Conn, name string) (string, error)
	// begin makes that database, and drops a half-made one.
	begin(ctx context.Context, conn *sql.Conn, building string) error
	// finish makes the template complete. No other session may use the database any more. If the session of conn has ended,
	// and with it the lock, finish fails.
	finish(ctx context.Context, conn *sql.Conn, building, name string) error
	// create makes a database. If it fails, it leaves none.
	create(ctx context.Context, db *sql.DB, b blueprint, name string) error
	// reset makes a database that a test has used like new. If that cannot be done, it reports false, and the database must
	// be dropped.
	reset(ctx context.Context, db *sql.DB, b blueprint, name string) (bool, error)

	// use notes that a template is in use today.
	use(ctx context.Context, db querier, name string) error
	// unused returns for how many days a template has not been used.
	unused(ctx context.Context, db querier, name string) (days int, err error)
	// databases lists the databases of this package.
	databases(ctx context.Context, conn *sql.Conn) ([]string, error)
	// lockOfBuilding returns the lock of a database in which a template may have been built.
	lockOfBuilding(ctx context.Context, conn *sql.Conn, database string) (lock string, ok bool)
}

// built has the blueprints that this process knows, by the server's DSN and the template's name.
var built memo[blueprint]

// blueprint returns how to make databases of a template, which is made first if it is not there. A nil template is an empty
// database.
func (s server) blueprint(t *Template) (blueprint, error) {
	name := ""
	if t != nil {
		var err error
		if name, err = t.name(s.product.userOf(s.record.DSN)); err != nil {
			return blueprint{}, err
		}
	}
	return built.get(s.record.DSN+" "+name, func() (blueprint, error) {
		ctx, cancel := context.WithTimeout(context.Background(), migrating)
		defer cancel()
		return build{s, t, name}.findOrBuild(ctx)
	})
}

// build makes a template on a server.
type build struct {
	server
	template *Template // nil: nothing is to be made
	name     string    // the template's database
}

// findOrBuild returns the blueprint of a template, which it makes if it is not there.
func (s build) findOrBuild(ctx context.Context) (blueprint, error) {
	db, done, err := s.admin()
	if err != nil {
		return blueprint{}, err
	}
	defer done()
	c := s.product.copier()
	if s.template == nil {
		return c.empty(ctx, db)
	}
	b, err := c.find(ctx, db, s.name)
	if errors.Is(err, sql.ErrNoRows) {
		if err = s.runLocked(ctx, c); err == nil {
			b, err = c.find(ctx, db, s.name)
		}
	}
	if err != nil {
		return blueprint{}, err
	}
	// If that fails, for another process does the same, the template is dropped early at worst, and made again.
	_ = c.use(ctx, db, s.name)
	return b, nil
}

// runLocked makes the template, unless another process does so first.
func (s build) runLocked(ctx context.Context, c copier) error {
	locking, err := s.product.open(s.record.DSN)
	if err != nil {
		return err
	}
	defer func() { _ = locking.Close() }() // ends the session, and with it the lock
	conn, err := locking.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()

	if err := c.stay(ctx, conn); err != nil {
		return err
	}
	building, err := c.building(ctx, conn, s.name)
	if err != nil {
		return err
	}
	// A waiting statement would keep a transaction open on PostgreSQL.
	err = await(ctx, 20*time.Millisecond, func() (bool, error) { return c.tryLock(ctx, conn, building) })
	if err != nil {
		return fmt.Errorf("wait for the process that makes the template: %w", err)
	}
	if _, err := c.find(ctx, conn, s.name); !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	server := sha256.Sum256([]byte(s.record.DSN))
	failures := s.name + "-" + hex.EncodeToString(server[:4])
	st, errState := openState()
	if errState == nil {
		if err := st.recall(failures); err != nil {
			return migrationError{err}
		}
	}
	err = s.run(ctx, c, conn, building)
	if failed := (migrationError{}); errState == nil && errors.As(err, &failed) {
		st.forget()
		st.remember(failures, err)
	}
	return err
}

// run makes the template. Whatever happens, also in a migration that ends its goroutine, no half-made one is left unless
// this process is killed: what it drops, it drops in a context of its own.
//
//nolint:contextcheck,nolintlint // see above; nolintlint does not know that it is used
func (s build) run(ctx context.Context, c copier, conn *sql.Conn, building string) error {
	if err := c.begin(ctx, conn, building); err != nil {
		return err
	}
	complete := false
	defer func() {
		if !complete {
			_ = s.dropNow(building)
		}
	}()
	if err := s.migrate(ctx, building); err != nil {
		return migrationError{fmt.Errorf("migrate: %w", redactError(s.product, s.record.DSN, err))}
	}
	if err := c.finish(ctx, conn, building, s.name); err != nil {
		return fmt.Errorf("complete the template: %w", err)
	}
	complete = true
	return nil
}

// migrate runs the template's migration in a database.
func (s build) migrate(ctx context.Context, database string) error {
	dsn, err := s.product.in(s.record.DSN, database)
	if err != nil {
		return err
	}
	db, err := sqlx.Open(s.product.driver(), dsn)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	if err := s.template.migrate(ctx, &Database{DB: db, DSN: dsn, Engine: s.product.engine(), Server: s.String()}); err != nil {
		return err
	}
	if err := db.Close(); err != nil {
		return err
	}
	admin, done, err := s.admin()
	if err != nil {
		return err
	}
	defer done()
	left, err := leftSessions(ctx, s.product, admin, database)
	if len(left) > 0 {
		return fmt.Errorf("it has left connections open: %q", left)
	}
	return err
}

// dropNow drops a database.
func (s server) dropNow(name string) error {
	return s.administer(func(ctx context.Context, admin *sql.DB) error { return s.product.drop(ctx, admin, name) })
}
