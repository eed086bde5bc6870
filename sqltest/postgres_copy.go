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

	"github.com/jackc/pgx/v5/pgconn"
)

// postgresCopier copies databases by CREATE DATABASE … TEMPLATE. A template is built under another name and renamed when it
// is complete.
type postgresCopier struct{}

const buildingPrefix = "sqltest_build_"

// tryLock takes an advisory lock, which excludes only sessions of the same database; see begin.
func (postgresCopier) tryLock(ctx context.Context, conn *sql.Conn, name string) (locked bool, err error) {
	err = conn.QueryRowContext(ctx, "SELECT pg_try_advisory_lock($1)", advisoryKey(name)).Scan(&locked)
	return locked, err
}

func advisoryKey(name string) int64 {
	sum := sha256.Sum256([]byte(name))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

func (postgresCopier) empty(ctx context.Context, db *sql.DB) (b blueprint, err error) {
	b.strategy, err = copyStrategy(ctx, db)
	return b, err
}

func (postgresCopier) find(ctx context.Context, db querier, name string) (b blueprint, err error) {
	if err := db.QueryRowContext(ctx, "SELECT datname FROM pg_database WHERE datname = $1", name).Scan(&b.name); err != nil {
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

// begin names the database after the one that conn is connected to as well: sessions of different databases do not exclude
// each other, so they may build at once. The first to finish wins.
func (postgresCopier) begin(ctx context.Context, conn *sql.Conn, name string) (building string, err error) {
	var current string
	if err := conn.QueryRowContext(ctx, "SELECT current_database()").Scan(&current); err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(name + " " + current))
	building = buildingPrefix + hex.EncodeToString(sum[:10])
	if _, err := conn.ExecContext(ctx, "DROP DATABASE IF EXISTS "+building+" WITH (FORCE)"); err != nil {
		return "", err
	}
	_, err = conn.ExecContext(ctx, "CREATE DATABASE "+building)
	return building, err
}

// finish forbids connections to the template: a database with sessions cannot be copied, and a template must not change.
func (postgresCopier) finish(ctx context.Context, conn *sql.Conn, name, building string) error {
	_, err := conn.ExecContext(ctx, "ALTER DATABASE "+building+" WITH ALLOW_CONNECTIONS false")
	if err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, "ALTER DATABASE "+building+" RENAME TO "+name)
	if isPostgresError(err, "42P04") { // another process was faster, see begin
		_, err = conn.ExecContext(ctx, "DROP DATABASE "+building+" WITH (FORCE)")
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
			return errors.Join(err, postgres{}.drop(ctx, db, name))
		}
	}
	return nil
}

func isPostgresError(err error, code string) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && answer.Code == code
}
