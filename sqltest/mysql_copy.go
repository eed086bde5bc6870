//go:build !sqltest_no_mysql

package sqltest

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock/internal/cluster"
)

// mysqlCopier copies databases by running the statements that SHOW CREATE gives, and INSERT … SELECT. These servers have
// nothing quicker: CREATE TABLE … LIKE loses foreign keys, and RENAME TABLE costs more than CREATE TABLE. A template is
// complete when it has the table sqltest_template, with the statements.
type mysqlCopier struct{ product mysqlLike }

// mark is the content of the table sqltest_template.
type mark struct {
	Objects []object
	Inexact string // why the template cannot be copied
}

const (
	markTable = "sqltest_template"
	// elsewhere is the current database of sessions that have none. The one of a test would look like the test's.
	elsewhere = "information_schema"
)

// tryLock locks the name on the whole server.
func (mysqlCopier) tryLock(ctx context.Context, conn *sql.Conn, name string) (bool, error) {
	var locked sql.NullBool
	err := conn.QueryRowContext(ctx, "SELECT GET_LOCK(?, 0)", name).Scan(&locked)
	return locked.Bool, err
}

func (mysqlCopier) unlock(ctx context.Context, conn *sql.Conn, name string) error {
	_, err := conn.ExecContext(ctx, "DO RELEASE_LOCK(?)", name)
	return err
}

func (mysqlCopier) isLocked(ctx context.Context, conn *sql.Conn, name string) (bool, error) {
	var free sql.NullBool
	err := conn.QueryRowContext(ctx, "SELECT IS_FREE_LOCK(?)", name).Scan(&free)
	return !free.Bool, err
}

// clustered knows what package cluster knows.
func (mysqlCopier) clustered(ctx context.Context, conn *sql.Conn) (bool, error) {
	variables, err := cluster.Read(ctx, conn, cluster.Query)
	return cluster.Of(variables) != cluster.None, err
}

func (mysqlCopier) stay(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "SET SESSION wait_timeout = 31536000")
	return err
}

func (mysqlCopier) use(ctx context.Context, db querier, name string) error {
	_, err := db.ExecContext(ctx, "UPDATE "+name+"."+markTable+" SET used = UTC_DATE() WHERE used <> UTC_DATE()")
	return err
}

func (mysqlCopier) unused(ctx context.Context, db querier, name string) (days int, err error) {
	err = db.QueryRowContext(ctx, "SELECT DATEDIFF(UTC_DATE(), used) FROM "+name+"."+markTable).Scan(&days)
	return days, err
}

func (mysqlCopier) databases(ctx context.Context, conn *sql.Conn) ([]string, error) {
	return namesOf(ctx, conn, `SELECT schema_name FROM information_schema.schemata WHERE schema_name LIKE 'sqltest\_%'`)
}

func (mysqlCopier) empty(context.Context, *sql.DB) (blueprint, error) { return blueprint{}, nil }

func (mysqlCopier) find(ctx context.Context, db querier, name string) (blueprint, error) {
	var content []byte
	err := db.QueryRowContext(ctx, "SELECT content FROM "+name+"."+markTable).Scan(&content)
	// No such database, or no such table.
	if answer := (*mysql.MySQLError)(nil); errors.As(err, &answer) && (answer.Number == 1049 || answer.Number == 1146) {
		return blueprint{}, sql.ErrNoRows
	}
	if err != nil {
		return blueprint{}, err
	}
	var m mark
	err = json.Unmarshal(content, &m)
	return blueprint{name: name, objects: m.Objects, inexact: m.Inexact, resettable: m.Inexact == "" && resettable(m.Objects)}, err
}

// building returns the name itself: a database cannot be renamed.
func (mysqlCopier) building(_ context.Context, _ *sql.Conn, name string) (string, error) {
	return name, nil
}

func (mysqlCopier) lockOfBuilding(_ context.Context, _ *sql.Conn, database string) (string, bool) {
	if found := templateName.FindStringSubmatch(database); found != nil {
		return found[1], true
	}
	return "", false
}

func (mysqlCopier) begin(ctx context.Context, conn *sql.Conn, building string) error {
	if _, err := conn.ExecContext(ctx, "DROP DATABASE IF EXISTS "+building); err != nil {
		return err
	}
	_, err := conn.ExecContext(ctx, "CREATE DATABASE "+building)
	return err
}

// finish reads the template, makes one copy, and reads that too: if they differ, the template cannot be copied.
func (c mysqlCopier) finish(ctx context.Context, conn *sql.Conn, _, name string) error {
	trial := name + trialSuffix
	if _, err := conn.ExecContext(ctx, "DROP DATABASE IF EXISTS "+trial); err != nil {
		return err
	}
	objects, err := c.read(ctx, conn, name)
	if err == nil {
		err = c.try(ctx, conn, blueprint{name: name, objects: objects}, trial)
	}
	m := mark{Objects: objects}
	if err != nil {
		m = mark{Inexact: err.Error()}
	}
	if _, err := conn.ExecContext(ctx, "DROP DATABASE IF EXISTS "+trial); err != nil {
		return err
	}
	// An event would go on changing the template.
	for _, o := range objects {
		if o.Kind == "EVENT" {
			if _, err := conn.ExecContext(ctx, "DROP EVENT "+name+"."+quoted(o.Name)); err != nil {
				return err
			}
		}
	}
	content, err := json.Marshal(m)
	if err != nil {
		return err
	}
	// In one statement: there is no table without its row.
	_, err = conn.ExecContext(ctx, "CREATE TABLE "+name+"."+markTable+
		" (id int PRIMARY KEY, used date NOT NULL, content longtext CHARACTER SET utf8mb4 NOT NULL)"+
		" SELECT 1 AS id, UTC_DATE() AS used, CAST(? AS char CHARACTER SET utf8mb4) AS content", string(content))
	return err
}

// try makes a copy and compares it with the template.
func (c mysqlCopier) try(ctx context.Context, conn *sql.Conn, b blueprint, trial string) error {
	if err := c.copy(ctx, conn, b, trial); err != nil {
		return err
	}
	copied, err := c.read(ctx, conn, trial)
	if err != nil {
		return err
	}
	for i, o := range b.objects {
		if i >= len(copied) || o != copied[i] {
			return fmt.Errorf("%s %s: the copy is different", o.Kind, o.Name)
		}
	}
	return nil
}

func (c mysqlCopier) create(ctx context.Context, db *sql.DB, b blueprint, name string) error {
	if b.name == "" {
		_, err := db.ExecContext(ctx, "CREATE DATABASE "+name)
		return err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	err = c.copy(ctx, conn, b, name)
	_ = conn.Close() // so that the next statement needs no other one
	if err != nil {
		return errors.Join(err, c.product.drop(ctx, db, name))
	}
	return nil
}

// copy makes a copy. If it fails, it leaves one that is not complete. The statements of a copy must not be cut short.
func (c mysqlCopier) copy(ctx context.Context, conn *sql.Conn, b blueprint, name string) (err error) {
	do := func(statement string) {
		if err == nil {
			_, err = conn.ExecContext(ctx, statement)
		}
	}
	do("CREATE DATABASE " + name)
	do("USE " + name)
	defer func() {
		_, errUse := conn.ExecContext(ctx, "USE "+elsewhere)
		err = errors.Join(err, errUse)
	}()
	do(copying)
	waiting := b.objects
	for len(waiting) > 0 && err == nil {
		// A view may need one that is made later.
		var failed []object
		var why error
		for _, o := range waiting {
			if errObject := o.copy(ctx, conn, b.name, name); errObject != nil {
				failed, why = append(failed, o), errObject
			}
		}
		if len(failed) == len(waiting) {
			err = why
		}
		waiting = failed
	}
	return err
}

func quoted(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
