//go:build !sqltest_no_postgres

package sqltest

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// postgresCopier copies databases by CREATE DATABASE … TEMPLATE. A template is built under another name and renamed when it
// is complete.
type postgresCopier struct{}

// tryLock takes an advisory lock, which excludes only sessions of the same database; see building.
func (postgresCopier) tryLock(ctx context.Context, conn *sql.Conn, name string) (locked bool, err error) {
	err = conn.QueryRowContext(ctx, "SELECT pg_try_advisory_lock($1)", advisoryKey(name)).Scan(&locked)
	return locked, err
}

func advisoryKey(name string) int64 {
	sum := sha256.Sum256([]byte(name))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

func (postgresCopier) unlock(ctx context.Context, conn *sql.Conn, name string) error {
	_, err := conn.ExecContext(ctx, "SELECT pg_advisory_unlock($1)", advisoryKey(name))
	return err
}

// isLocked sees the sessions of all databases.
func (postgresCopier) isLocked(ctx context.Context, conn *sql.Conn, name string) (locked bool, err error) {
	err = conn.QueryRowContext(ctx, `
		SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1
			AND (classid::bigint << 32) | objid::bigint = $1)`, advisoryKey(name)).Scan(&locked)
	return locked, err
}

func (postgresCopier) clustered(context.Context, *sql.Conn) (bool, error) { return false, nil }

func (postgresCopier) stay(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'idle_session_timeout'")
	return err
}

// use keeps the day in the comment of the database.
func (postgresCopier) use(ctx context.Context, db querier, name string) error {
	_, err := db.ExecContext(ctx, "COMMENT ON DATABASE "+name+" IS 'sqltest: used "+time.Now().UTC().Format(time.DateOnly)+"'")
	return err
}

func (postgresCopier) unused(ctx context.Context, db querier, name string) (days int, err error) {
	err = db.QueryRowContext(ctx, `
		SELECT coalesce((now() AT TIME ZONE 'UTC')::date - substring(shobj_description(oid, 'pg_database') from '[0-9-]{10}$')::date, 0)
		FROM pg_database WHERE datname = $1`, name).Scan(&days)
	return days, err
}

func (postgresCopier) databases(ctx context.Context, conn *sql.Conn) ([]string, error) {
	return namesOf(ctx, conn, `SELECT datname FROM pg_database WHERE datname LIKE 'sqltest\_%'`)
}

func (postgresCopier) empty(ctx context.Context, db *sql.DB) (b blueprint, err error) {
	b.strategy, err = copyStrategy(ctx, db)
	return b, err
}

func (postgresCopier) find(ctx context.Context, db querier, name string) (b blueprint, err error) {
	// A database with another name is still being built.
	find := `SELECT datname FROM pg_database WHERE datname = $1 AND datname LIKE 'sqltest\_template\_%'`
	if err := db.QueryRowContext(ctx, find, name).Scan(&b.name); err != nil {
		return blueprint{}, err
	}
	if b.strategy, err = copyStrategy(ctx, db); err != nil {
		return blueprint{}, err
	}
	b.settings, err = databaseSettings(ctx, db, name)
	return b, err
}

// databaseSettings returns the settings that ALTER DATABASE … SET has made, which CREATE DATABASE does not copy.
func databaseSettings(ctx context.Context, db querier, name string) (settings []string, err error) {
	rows, err := db.QueryContext(ctx, `
		SELECT split_part(setting, '=', 1), substr(setting, strpos(setting, '=') + 1)
		FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase, unnest(s.setconfig) setting
		WHERE d.datname = $1 AND s.setrole = 0`, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var setting, value string
		if err := rows.Scan(&setting, &value); err != nil {
			return nil, err
		}
		// The value of a list of names is one already, as SQL.
		if !slices.Contains([]string{"search_path", "temp_tablespaces", "local_preload_libraries", "session_preload_libraries"}, setting) {
			value = "'" + strings.ReplaceAll(value, "'", "''") + "'"
		}
		settings = append(settings, setting+" = "+value)
	}
	return settings, rows.Err()
}

// copyStrategy returns the faster way to copy a small database. Without fsync, to copy its files takes a fifth of the time
// of the default, which writes every page to the WAL. With fsync it syncs every file, which is slower.
func copyStrategy(ctx context.Context, db querier) (strategy string, err error) {
	err = db.QueryRowContext(ctx, `
		SELECT CASE WHEN current_setting('server_version_num')::int >= 150000 AND current_setting('fsync') = 'off'
			THEN ' STRATEGY FILE_COPY' ELSE '' END`).Scan(&strategy)
	return strategy, err
}

// building names the database after the one that conn is connected to as well: advisory locks of different databases do not
// exclude each other, so two processes may build at once. The first to finish wins.
func (c postgresCopier) building(ctx context.Context, conn *sql.Conn, name string) (string, error) {
	prefix, err := c.buildingPrefix(ctx, conn)
	sum := sha256.Sum256([]byte(name))
	return prefix + hex.EncodeToString(sum[:10]), err
}

func (postgresCopier) buildingPrefix(ctx context.Context, conn *sql.Conn) (string, error) {
	var current string
	err := conn.QueryRowContext(ctx, "SELECT current_database()").Scan(&current)
	sum := sha256.Sum256([]byte(current))
	return "sqltest_build_" + hex.EncodeToString(sum[:4]) + "_", err
}

func (c postgresCopier) lockOfBuilding(ctx context.Context, conn *sql.Conn, database string) (string, bool) {
	prefix, err := c.buildingPrefix(ctx, conn)
	return database, err == nil && strings.HasPrefix(database, prefix)
}

func (postgresCopier) begin(ctx context.Context, conn *sql.Conn, building string) error {
	if err := dropPostgres(ctx, conn, building); err != nil {
		return err
	}
	_, err := conn.ExecContext(ctx, "CREATE DATABASE "+building)
	return err
}

// finish forbids connections to the template: a database with sessions cannot be copied, and a template must not change.
func (postgresCopier) finish(ctx context.Context, conn *sql.Conn, building, name string) error {
	_, err := conn.ExecContext(ctx, "ALTER DATABASE "+building+" WITH ALLOW_CONNECTIONS false")
	if err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, "ALTER DATABASE "+building+" RENAME TO "+name)
	if isPostgresError(err, "42P04") { // another process was faster, see begin
		err = dropPostgres(ctx, conn, building)
	}
	return err
}

func (postgresCopier) create(ctx context.Context, db *sql.DB, b blueprint, name string) error {
	statement := "CREATE DATABASE " + name
	if b.name != "" {
		statement += " TEMPLATE " + b.name
	}
	if _, err := db.ExecContext(ctx, statement+b.strategy); err != nil {
		return err
	}
	for _, setting := range b.settings {
		if _, err := db.ExecContext(ctx, "ALTER DATABASE "+name+" SET "+setting); err != nil {
			return errors.Join(err, dropPostgres(ctx, db, name))
		}
	}
	return nil
}

// reset is not needed: to make a copy takes less time.
func (postgresCopier) reset(context.Context, *sql.DB, blueprint, string) (bool, error) {
	return false, nil
}

func isPostgresError(err error, code string) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && answer.Code == code
}
