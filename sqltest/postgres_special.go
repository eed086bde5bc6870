//go:build !sqltest_no_postgres

package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

func (postgresDSN) with(dsn string, _ setting) (string, error) { return dsn, nil }

func (postgresSQL) set(ctx context.Context, db *sql.DB, name string, s setting) error {
	var parts []string
	for part := range strings.SplitSeq(s.name, ".") {
		parts = append(parts, identifier(part))
	}
	_, err := db.ExecContext(ctx, "ALTER DATABASE "+name+" SET "+strings.Join(parts, ".")+" = "+literal(s.value))
	return err
}

func (postgresSQL) extend(ctx context.Context, db *sql.DB, extension string) error {
	_, err := db.ExecContext(ctx, "CREATE EXTENSION IF NOT EXISTS "+identifier(extension)+" CASCADE")
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w (if it is not installed, name an image that has it: SQLTEST_POSTGRES=docker:IMAGE)", err)
}

func (postgresSQL) makeUser(ctx context.Context, db *sql.DB, name, password string, grants []string) error {
	return grant(ctx, db, "CREATE ROLE "+name+" LOGIN PASSWORD "+literal(password), name, grants)
}

// dropUser also drops what the user owns and was granted in the database of db.
func (postgresSQL) dropUser(ctx context.Context, db *sql.DB, name string) error {
	var is bool
	err := db.QueryRowContext(ctx, "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)", name).Scan(&is)
	if err != nil || !is {
		return err
	}
	_, err = db.ExecContext(ctx, "DROP OWNED BY "+name+"; DROP ROLE "+name)
	return err
}

func (postgresSQL) users(ctx context.Context, db querier) ([]string, error) {
	return namesOf(ctx, db, `SELECT rolname FROM pg_roles WHERE rolname LIKE 'sqltest\_%'`)
}

func (postgresDSN) as(dsn, user, password string) (string, error) {
	if !strings.Contains(dsn, "://") {
		return dsn + " user=" + user + " password=" + password, nil // the last of two settings wins
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return "", errors.New("not a PostgreSQL URL")
	}
	u.User = url.UserPassword(user, password)
	query := u.Query()
	query.Del("user")
	query.Del("password")
	u.RawQuery = query.Encode()
	return u.String(), nil
}

// ease is not done by initdb: before PostgreSQL 14 it reads 99 characters, and a verifier is longer. The server may have been
// started read-only, or with standbys to wait for.
func (postgresSQL) ease(ctx context.Context, db *sql.DB, password string) error {
	_, err := db.ExecContext(ctx, `
		SET LOCAL transaction_read_only = off;
		SET LOCAL synchronous_commit = local;
		ALTER ROLE postgres PASSWORD `+literal(verifier(password)))
	return err
}

func (postgresSQL) now(ctx context.Context, db *sql.DB) (time.Time, error) {
	return nowBy(ctx, db, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
}

func (postgres) tls(dir string) []string {
	return []string{"ssl=on", "ssl_cert_file=" + path.Join(dir, certFile), "ssl_key_file=" + path.Join(dir, keyFile)}
}

func (p postgresDSN) secure(dsn string, inst *instance, _ *certificates) (string, error) {
	return p.param(dsn, map[string]string{"sslmode": "verify-full", "sslrootcert": inst.file(caFile)})
}

func (postgresDSN) insecure(*instance) {}

func (p postgresDSN) pooled(dsn, address string, plain bool) (entry, through string, err error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return "", "", errors.New("not a PostgreSQL DSN")
	}
	entry = fmt.Sprintf("%s = host=%s port=%d dbname=%[1]s user=%[4]s password=%[5]s", config.Database, literal(config.Host), config.Port,
		literal(config.User), literal(config.Password))
	if through, err = p.at(dsn, address); err != nil {
		return "", "", err
	}
	params := map[string]string{"sslmode": "disable"}
	if plain {
		params["default_query_exec_mode"] = "exec"
	}
	through, err = p.param(through, params)
	return entry, through, err
}
