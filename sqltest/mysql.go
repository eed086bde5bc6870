//go:build !sqltest_no_mysql

package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
)

// mysqlLike is MySQL or MariaDB.
type mysqlLike struct {
	mysqlDSN
	mysqlSQL
	isMaria bool
}

type (
	mysqlDSN struct{} // implements dsns
	mysqlSQL struct{} // implements statements
)

func (m mysqlLike) engine() Engine   { return choose(m.isMaria, EngineMariaDB, EngineMySQL) }
func (m mysqlLike) title() string    { return choose(m.isMaria, "MariaDB", "MySQL") }
func (m mysqlLike) variable() string { return choose(m.isMaria, "SQLTEST_MARIADB", "SQLTEST_MYSQL") }
func (mysqlLike) example() string    { return "user:password@tcp(host:3306)/?parseTime=true" }
func (m mysqlLike) image() string    { return choose(m.isMaria, "mariadb:11.4", "mysql:8.4") }
func (mysqlLike) port() string       { return "3306" }
func (mysqlDSN) driver() string      { return "mysql" }
func (mysqlLike) user() string       { return "mysql" }
func (mysqlLike) stopSignal() string { return "TERM" }
func (mysqlLike) endSignal() string  { return "KILL" }

func (m mysqlLike) identify(ctx context.Context, db *sql.DB) (string, error) {
	var version string
	if err := db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version); err != nil {
		return "", err
	}
	isMaria := strings.Contains(strings.ToLower(version), "mariadb")
	number, _, _ := strings.Cut(version, "-")
	found := choose(isMaria, "MariaDB ", "MySQL ") + number
	if isMaria != m.isMaria {
		return "", wrongProductError{want: m.title(), found: found}
	}
	if !isMaria {
		return found, nil
	}
	return found, nodeReady(ctx, db)
}

// nodeReady returns an error if the server is a node of a Galera cluster that has not joined it yet, or has lost it. Such
// a node answers a SELECT without a table, and refuses what reads or writes one (error 1047; observed on 10.11).
func nodeReady(ctx context.Context, db *sql.DB) error {
	var name, state string
	err := db.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'wsrep_local_state_comment'").Scan(&name, &state)
	switch {
	case errors.Is(err, sql.ErrNoRows) || err == nil && (state == "" || state == "Synced" || state == "Donor/Desynced"):
		return nil
	case err == nil:
		err = fmt.Errorf("the node of a Galera cluster is not ready: %s", state)
	}
	return err
}

func (mysqlSQL) sessions(ctx context.Context, db *sql.DB, database string) ([]string, error) {
	ids, found, err := processes(ctx, db, database)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return found, nil
}

// connection is a session in the server's list.
type connection struct {
	ID      int64          `db:"Id"`
	User    string         `db:"User"`
	Host    string         `db:"Host"`
	DB      sql.NullString `db:"db"`
	Command string         `db:"Command"`
	Info    sql.NullString `db:"Info"`
}

// hidden reports whether the database of a session is not shown, although it may have one: MariaDB shows neither database
// nor statement of a session whose data it cannot lock within a moment.
func (c connection) hidden() bool { return c.Command == "Busy" }

// processes returns the sessions of a database. MySQL's information_schema.PROCESSLIST fails while the statement of any
// session has a parameter that is not UTF-8; SHOW does not. While a session is hidden it asks again, for a second.
func processes(ctx context.Context, db *sql.DB, database string) (ids []int64, described []string, err error) {
	var all []connection
	until := time.Now().Add(time.Second)
	err = await(ctx, 2*time.Millisecond, func() (bool, error) {
		all = nil
		err := sqlx.NewDb(db, "mysql").Unsafe().SelectContext(ctx, &all, "SHOW FULL PROCESSLIST")
		return !slices.ContainsFunc(all, connection.hidden) || time.Now().After(until), err
	})
	if err != nil {
		return nil, nil, err
	}
	for _, p := range all {
		if p.DB.String != database {
			continue
		}
		ids = append(ids, p.ID)
		described = append(described, fmt.Sprintf("connection %d (%s from %s), %s, statement: %s",
			p.ID, p.User, p.Host, p.Command, strings.ToValidUTF8(fmt.Sprintf("%.200s", p.Info.String), "?")))
	}
	return ids, described, nil
}

// drop ends the sessions first: one with an open transaction would block the DROP for as long as lock_wait_timeout,
// which is a year.
func (mysqlSQL) drop(ctx context.Context, db *sql.DB, database string) error {
	ids, _, err := processes(ctx, db, database)
	if err != nil {
		return err
	}
	for _, id := range ids {
		// KILL fails if the session is gone already, which is just as good.
		_, _ = db.ExecContext(ctx, fmt.Sprintf("KILL %d", id))
	}
	_, err = db.ExecContext(ctx, "DROP DATABASE IF EXISTS "+database)
	return err
}

func (m mysqlLike) options(settings []string) []string {
	options := []string{
		"--max-connections=300",
		"--character-set-server=utf8mb4",
		"--skip-name-resolve",
		"--skip-log-bin",
		// Written to the file system at each commit, but not to the disk: the data survives a crash of the server, but
		// not of the machine.
		"--innodb-flush-log-at-trx-commit=2",
	}
	if !m.isMaria {
		// Its threads pay off with many processors only: without them CREATE TABLE takes half as long.
		options = append(options, "--loose-innodb-log-writer-threads=OFF")
	}
	for _, s := range settings {
		options = append(options, "--"+strings.TrimLeft(s, "-"))
	}
	return options
}

func (m mysqlLike) environment(password string) []string {
	env := []string{"MYSQL_ROOT_PASSWORD=" + password}
	if m.isMaria {
		env = append(env, "MARIADB_ROOT_PASSWORD="+password)
	}
	return env
}

func (mysqlLike) command() []string  { return nil }
func (mysqlLike) dataFolder() string { return "/var/lib/mysql" }

func (m mysqlLike) find(dir, _ string) (programs, error) {
	dirs := []string{dir}
	if dir == "" {
		dirs = installedMySQL(choose(m.isMaria, "mariadbd", "mysqld"))
	}
	servers := choose(m.isMaria, []string{"mariadbd", "mysqld"}, []string{"mysqld"})
	for _, dir := range dirs {
		for _, server := range servers {
			p := programs{dir: dir, server: filepath.Join(dir, server)}
			if !isProgram(p.server) || m.isMaria != saysMariaDB(p.server) {
				continue
			}
			if m.isMaria && !findInstaller(&p) {
				continue
			}
			return p, nil
		}
	}
	if m.isMaria {
		return programs{}, fmt.Errorf("no mariadbd and mariadb-install-db in %s", strings.Join(dirs, ", "))
	}
	return programs{}, fmt.Errorf("no mysqld (other than MariaDB's) in %s", strings.Join(dirs, ", "))
}

func installedMySQL(server string) []string {
	dirs := []string{"/usr/sbin", "/usr/local/mysql/bin", "/opt/homebrew/opt/mysql/bin"}
	if path, err := exec.LookPath(server); err == nil {
		dirs = append([]string{filepath.Dir(path)}, dirs...)
	}
	return dirs
}

// saysMariaDB reports whether a server program is MariaDB, which is installed as mysqld, too.
func saysMariaDB(server string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), quickly)
	defer cancel()
	out, _ := exec.CommandContext(ctx, server, "--no-defaults", "--version").Output()
	return strings.Contains(string(out), "MariaDB")
}

func findInstaller(p *programs) bool {
	for _, dir := range []string{p.dir, filepath.Join(p.dir, "../bin"), filepath.Join(p.dir, "../scripts")} {
		for _, name := range []string{"mariadb-install-db", "mysql_install_db"} {
			if path := filepath.Join(dir, name); isProgram(path) {
				p.initializer = path
				return true
			}
		}
	}
	return false
}

func (m mysqlLike) initialize(p programs, f folder) []string {
	if m.isMaria {
		return []string{
			p.initializer, "--no-defaults", "--datadir=" + f.data,
			"--skip-test-db", "--skip-name-resolve", "--auth-root-authentication-method=normal",
		}
	}
	return []string{p.server, "--no-defaults", "--initialize-insecure", "--datadir=" + f.data}
}

func (m mysqlLike) serve(p programs, f folder, port string) []string {
	args := []string{
		p.server, "--no-defaults", "--datadir=" + f.data, "--tmpdir=" + f.temp,
		"--bind-address=127.0.0.1", "--port=" + port,
		// Relative to the data folder, because the path of a socket must be short.
		"--socket=mysqld.sock", "--pid-file=mysqld.pid",
		"--init-file=" + f.secret,
	}
	if !m.isMaria {
		args = append(args, "--mysqlx=OFF", "--secure-file-priv=NULL")
	}
	return args
}

// secret returns SQL that the server runs at each start, before it accepts connections. An installation may have
// created any of these users without a password.
func (mysqlLike) secret(password string) string {
	var sql strings.Builder
	for _, root := range []string{"root@'localhost'", "root@'127.0.0.1'"} {
		fmt.Fprintf(&sql, "CREATE USER IF NOT EXISTS %s;\n", root)
		fmt.Fprintf(&sql, "ALTER USER %s IDENTIFIED BY '%s';\n", root, password)
		fmt.Fprintf(&sql, "GRANT ALL ON *.* TO %s WITH GRANT OPTION;\n", root)
	}
	return sql.String()
}

func newMySQL(isMaria bool) product { return mysqlLike{isMaria: isMaria} }

func (m mysqlLike) copier() copier { return mysqlCopier{m} }
