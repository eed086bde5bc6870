//go:build !sqltest_no_mysql

package sqltest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"path"
	"path/filepath"
	"time"

	"github.com/go-sql-driver/mysql"
)

// with lets the driver set the variable in each session.
func (mysqlDSN) with(dsn string, s setting) (string, error) {
	value := s.value
	if !number.MatchString(value) {
		value = literal(value)
	}
	return withParam(dsn, s.name, value)
}

func (mysqlSQL) set(context.Context, *sql.DB, string, setting) error { return nil }

func (mysqlSQL) extend(context.Context, *sql.DB, string) error {
	return errors.New("only PostgreSQL has extensions")
}

func (mysqlSQL) makeUser(ctx context.Context, db *sql.DB, name, password string, grants []string) error {
	account := name + "@'%'"
	return grant(ctx, db, "CREATE USER "+account+" IDENTIFIED BY "+literal(password), account, grants)
}

func (mysqlSQL) dropUser(ctx context.Context, db *sql.DB, name string) error {
	_, err := db.ExecContext(ctx, "DROP USER IF EXISTS "+name+"@'%'")
	return err
}

func (mysqlSQL) users(ctx context.Context, db querier) ([]string, error) {
	return namesOf(ctx, db, `SELECT User FROM mysql.user WHERE User LIKE 'sqltest\_%'`)
}

func (mysqlSQL) ease(context.Context, *sql.DB, string) error { return nil }

func (mysqlSQL) now(ctx context.Context, db *sql.DB) (time.Time, error) {
	return nowBy(ctx, db, "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))")
}

func (mysqlLike) tls(dir string) []string {
	return []string{"ssl-ca=" + path.Join(dir, caFile), "ssl-cert=" + path.Join(dir, certFile), "ssl-key=" + path.Join(dir, keyFile)}
}

// secure registers a configuration for the driver, which cannot name a file in a DSN.
func (mysqlDSN) secure(dsn string, inst *instance, certs *certificates) (string, error) {
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return "", err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(certs.ca)) {
		return "", errors.New("the authority's certificate cannot be read")
	}
	config.TLSConfig = "sqltest-" + filepath.Base(inst.dir)
	return config.FormatDSN(), mysql.RegisterTLSConfig(config.TLSConfig, &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12})
}

// insecure forgets that configuration.
func (mysqlDSN) insecure(inst *instance) {
	mysql.DeregisterTLSConfig("sqltest-" + filepath.Base(inst.dir))
}

func (mysqlDSN) pooled(string, string, bool) (entry, through string, err error) {
	return "", "", errors.New("PgBouncer is for PostgreSQL")
}
