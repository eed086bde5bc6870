//go:build !sqltest_no_postgres

package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sqllock/sqllock/internal/dburl"
)

type postgres struct {
	postgresDSN
	postgresSQL
}

type (
	postgresDSN struct{} // implements dsns
	postgresSQL struct{} // implements statements
)

func (postgres) engine() Engine    { return EnginePostgres }
func (postgres) title() string     { return "PostgreSQL" }
func (postgres) variable() string  { return "SQLTEST_POSTGRES" }
func (postgres) example() string   { return "postgres://user:password@host:5432/postgres" }
func (postgres) image() string     { return "postgres:17" }
func (postgres) port() string      { return "5432" }
func (postgresDSN) driver() string { return "pgx" }
func (postgres) user() string      { return postgresUser }

// stopSignal returns INT, a fast shutdown (TERM would wait for every client to leave). endSignal returns QUIT, an
// immediate shutdown.
func (postgres) stopSignal() string { return "INT" }
func (postgres) endSignal() string  { return "QUIT" }

func (postgresDSN) parse(dsn string) (string, string, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil || dburl.IsMisread(dsn) {
		return "", "", errors.New("not a PostgreSQL DSN")
	}
	return dsn, config.Password, nil
}

func (postgresDSN) private(address, password string) string {
	dsn := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword("postgres", password),
		Host:     address,
		Path:     "/postgres",
		RawQuery: "sslmode=disable",
	}
	return dsn.String()
}

func (postgresDSN) in(dsn, database string) (string, error) {
	if !strings.Contains(dsn, "://") {
		return dsn + " dbname=" + database, nil // the last of two settings wins
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return "", errors.New("not a PostgreSQL URL")
	}
	u.Path = "/" + database
	query := u.Query()
	for _, again := range []string{"dbname", "database"} {
		if query.Has(again) {
			query.Del(again)
			u.RawQuery = query.Encode()
		}
	}
	return u.String(), nil
}

func (postgresDSN) endpoint(dsn string) (network, address string, err error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return "", "", errors.New("not a PostgreSQL DSN")
	}
	network, address = pgconn.NetworkAddress(config.Host, config.Port)
	return network, address, nil
}

func (postgresDSN) at(dsn, address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	if !strings.Contains(dsn, "://") {
		return dsn + " host=" + host + " port=" + port, nil // the last of two settings wins
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return "", errors.New("not a PostgreSQL URL")
	}
	u.Host = address
	query := u.Query()
	for _, again := range []string{"host", "hostaddr", "port"} {
		query.Del(again)
	}
	u.RawQuery = query.Encode()
	return u.String(), nil
}

// param returns the same DSN with these parameters.
func (postgresDSN) param(dsn string, params map[string]string) (string, error) {
	if !strings.Contains(dsn, "://") {
		parts := []string{dsn}
		for name, value := range params {
			parts = append(parts, name+"="+value) // the last of two settings wins
		}
		return strings.Join(parts, " "), nil
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return "", errors.New("not a PostgreSQL URL")
	}
	query := u.Query()
	for name, value := range params {
		query.Set(name, value)
	}
	u.RawQuery = query.Encode()
	return u.String(), nil
}

func (postgresDSN) userOf(dsn string) string {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return ""
	}
	return config.User
}

func (postgresDSN) open(dsn string) (*sql.DB, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "sqltest"
	}
	return stdlib.OpenDB(*config), nil
}

func (postgres) identify(ctx context.Context, db *sql.DB) (string, error) {
	var version string
	if err := db.QueryRowContext(ctx, "SHOW server_version").Scan(&version); err != nil {
		return "", err
	}
	number, _, _ := strings.Cut(version, " ")
	return "PostgreSQL " + number, nil
}

func (postgresSQL) sessions(ctx context.Context, db *sql.DB, database string) ([]string, error) {
	rows, err := db.QueryContext(ctx, `
		SELECT pid, application_name, coalesce(state, '?'), left(query, 200)
		FROM pg_stat_activity
		WHERE datname = $1 AND pid <> pg_backend_pid() AND backend_type = 'client backend'
		ORDER BY pid`, database)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var found []string
	for rows.Next() {
		var pid int
		var name, state, query string
		if err := rows.Scan(&pid, &name, &state, &query); err != nil {
			return nil, err
		}
		found = append(found, fmt.Sprintf("backend %d (application_name %q), %s, last statement: %s", pid, name, state, query))
	}
	return found, rows.Err()
}

func (postgresSQL) drop(ctx context.Context, db *sql.DB, database string) error {
	return dropPostgres(ctx, db, database)
}

// dropPostgres drops a database together with its sessions.
func dropPostgres(ctx context.Context, db querier, database string) error {
	drop := "DROP DATABASE IF EXISTS " + database
	_, err := db.ExecContext(ctx, drop+" WITH (FORCE)")
	if isPostgresError(err, "42601") { // PostgreSQL 12 does not know FORCE. It waits a few seconds for sessions that end.
		end := "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()"
		if _, err = db.ExecContext(ctx, end, database); err == nil {
			_, err = db.ExecContext(ctx, drop)
		}
	}
	return err
}

func (postgres) options(settings []string) []string {
	ours := []string{
		"max_connections=300", "fsync=off", "full_page_writes=off",
		"jit=off", // takes longer than it saves where there are few rows
	}
	options := make([]string, 0, 2*(len(ours)+len(settings)))
	for _, s := range append(ours, settings...) {
		options = append(options, "-c", s)
	}
	return options
}

// environment puts the data outside the folders that images declare as volumes, because their layout differs between
// versions of the official image.
func (p postgres) environment(password string) []string {
	return []string{"POSTGRES_PASSWORD=" + password, "PGDATA=" + p.dataFolder() + "/data"}
}

func (postgres) command() []string  { return []string{"postgres"} }
func (postgres) dataFolder() string { return "/sqltest" }

func (postgres) find(dir, version string) (programs, error) {
	candidates := []string{dir}
	if dir == "" {
		candidates = installedPostgres()
		if major, _, _ := strings.Cut(version, "."); major != "" {
			candidates = append([]string{"/usr/lib/postgresql/" + major + "/bin"}, candidates...)
		}
	}
	for _, dir := range candidates {
		p := programs{dir: dir, server: filepath.Join(dir, "postgres"), initializer: filepath.Join(dir, "initdb")}
		if isProgram(p.server) && isProgram(p.initializer) {
			return p, nil
		}
	}
	return programs{}, fmt.Errorf("no postgres and initdb in %s", strings.Join(candidates, ", "))
}

// installedPostgres lists folders that may contain PostgreSQL: Debian's, the highest version first, then that of the
// initdb on the PATH.
func installedPostgres() []string {
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	version := func(dir string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
		return n
	}
	slices.SortFunc(dirs, func(a, b string) int { return version(b) - version(a) })
	if len(dirs) == 0 {
		dirs = append(dirs, "/usr/lib/postgresql/*/bin")
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		if target, err := filepath.EvalSymlinks(path); err == nil {
			path = target
		}
		dirs = append(dirs, filepath.Dir(path))
	} else {
		dirs = append(dirs, "PATH")
	}
	return dirs
}

func (postgres) initialize(p programs, f folder) []string {
	return []string{
		p.initializer, "-D", f.data, "--username=postgres", "--pwfile=" + f.secret,
		"--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync",
	}
}

func (postgres) serve(p programs, f folder, port string) []string {
	return []string{
		p.server, "-D", f.data, "-p", port,
		"-c", "listen_addresses=127.0.0.1",
		"-c", "unix_socket_directories=",
		// With the default, a killed server leaves files in /dev/shm.
		"-c", "dynamic_shared_memory_type=mmap",
	}
}

func (postgres) secret(password string) string { return password + "\n" }

func newPostgres() product { return postgres{} }

func (postgres) copier() copier { return postgresCopier{} }
