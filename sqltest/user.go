package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"

	"github.com/jmoiron/sqlx"
)

// User makes a user with few rights for tb, and opens the same database as this user. The grants are the middle of GRANT
// statements, and the user may do nothing else in the database:
//
//	app := db.User(t, "SELECT, INSERT ON orders", "SELECT ON goods")
//
// On PostgreSQL the user may connect without any grant, and has the rights of PUBLIC. On MySQL and MariaDB a user without a grant
// cannot connect, and "SELECT ON *" is for all tables of the database. The user is dropped when tb ends, before the database.
//
// User ends the test with Fatalf on SQLite, which has no users, and if the server's administrator may not make any.
func (db *Database) User(tb TB, grants ...string) *Database {
	tb.Helper()
	p, ok := productOf(db.Engine)
	if !ok {
		tb.Fatalf("sqltest: %s has no users", db.Server)
	}
	fail := func(err error) {
		tb.Helper()
		tb.Fatalf("sqltest: a user on %s: %v", db.Server, redactError(p, db.DSN, err))
	}
	admin, err := p.open(db.DSN)
	if err != nil {
		fail(err)
	}
	admin.SetMaxIdleConns(0)
	name, password := db.newUser(), randomID()
	drop := func() {
		tb.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), quickly)
		defer cancel()
		if err := errors.Join(p.dropUser(ctx, admin, name), admin.Close()); err != nil {
			tb.Logf("sqltest: drop a user on %s: %v", db.Server, redactError(p, db.DSN, err))
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patiently)
	defer cancel()
	if err := p.makeUser(ctx, admin, name, password, grants); err != nil {
		drop()
		fail(err)
	}
	user := *db
	if user.DSN, err = p.as(db.DSN, name, password); err == nil {
		user.DB, err = sqlx.Open(p.driver(), user.DSN)
	}
	if err != nil {
		drop()
		fail(err)
	}
	tb.Cleanup(func() {
		tb.Helper()
		if err := user.Close(); err != nil {
			tb.Logf("sqltest: close the database of a user: %v", err)
		}
		if keep(tb) {
			_ = admin.Close()
			return
		}
		drop()
	})
	return &user
}

// newUser returns a name for a user, of at most 32 characters. As in newName, some names are swept.
func (db *Database) newUser() string {
	return fmt.Sprintf("sqltest%s_%s_u%d", choose(db.sweeps, "", "_run"), ownMark, serial.Add(1))
}

var userName = regexp.MustCompile(`^sqltest_([0-9a-z]{10})_u[0-9]+$`)

func grant(ctx context.Context, db *sql.DB, create, name string, grants []string) error {
	if _, err := db.ExecContext(ctx, create); err != nil {
		return err
	}
	for _, grant := range grants {
		if _, err := db.ExecContext(ctx, "GRANT "+grant+" TO "+name); err != nil {
			return fmt.Errorf("GRANT %s: %w", grant, err)
		}
	}
	return nil
}
