package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	gomysql "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"
	"github.com/spf13/cobra"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/doctor"
	"github.com/sqllock/sqllock/internal/connector"
	"github.com/sqllock/sqllock/schema"
)

// connectTimeout bounds the opening of a connection unless the URL sets a timeout: a server that does not answer must
// lead to an error, not to an endless wait. Several hosts share the time.
const connectTimeout = 15 * time.Second

// database is an opened database. It connects when it is first used.
type database struct {
	*sqlx.DB
	dialect  schema.Dialect
	file     string          // the SQLite file
	folder   string          // the folder of the user's own file, which is created before use; empty: the database was named
	postgres *pgx.ConnConfig // PostgreSQL: the configuration from the URL
	mysql    *gomysql.Config // MySQL and MariaDB

	logger *slog.Logger                         // may be nil; for Lockers, as is hook
	hook   func(context.Context, sqllock.Event) // may be nil
}

// openDatabase opens the database that findDatabase finds. It warns if no database was named: a user who meant a server
// would lock nobody out.
func (m *Main) openDatabase(cmd *cobra.Command, p *place) (*database, error) {
	db, err := m.findDatabase(cmd, p)
	if err == nil && db.folder != "" {
		text := "no database is named, so locks are in a file of your own, " + db.file + ", which only your processes on this machine share"
		if m.getenv("DATABASE_URL") != "" {
			text += "; DATABASE_URL is set, but not read: set SQLLOCK_DB to it if it is meant"
		}
		m.warn(errors.New(text))
	}
	return db, err
}

// findDatabase opens the database that --db, --db-file or SQLLOCK_DB names, or else the user's own file.
//
// Its errors contain no part of the URL and no message of a parser, which may quote the URL: it may be a password.
func (m *Main) findDatabase(cmd *cobra.Command, p *place) (*database, error) {
	named, err := m.named(cmd, p)
	if err != nil {
		return nil, fail(exitUsage, err)
	}
	if named != "" {
		db, err := openURL(named)
		return db, fail(exitUsage, err)
	}
	file, err := m.stateFile()
	if err != nil {
		return nil, fail(exitUsage, err)
	}
	db, err := openSQLite(file)
	if err != nil {
		return nil, err
	}
	db.folder = filepath.Dir(file)
	return db, nil
}

// named returns the database name that the user gave, or "".
func (m *Main) named(cmd *cobra.Command, p *place) (string, error) {
	given := cmd.Flags().Changed
	switch {
	case given("db") && given("db-file"):
		return "", errors.New("--db and --db-file both name a database: leave out one of them")
	case given("db-file"):
		named, err := readDatabaseFile(p.file)
		if err == nil && exposed(p.file, named) {
			m.warn(errExposed)
		}
		return named, err
	case given("db") && p.url == "": // --db "$UNSET" must not silently mean a lock that nobody else sees
		return "", errors.New("--db is empty; " + urlForms)
	case given("db"):
		return p.url, nil
	}
	named, set := m.lookupEnv("SQLLOCK_DB")
	if set && named == "" { // a missing CI secret looks like this
		return "", errors.New("SQLLOCK_DB is set, but empty: unset it to lock by a file of this machine only; " + urlForms)
	}
	return named, nil
}

// attrs returns log attributes that identify the database, without secrets.
func (db *database) attrs() []any {
	switch db.dialect {
	case schema.SQLite:
		return []any{slog.String("engine", "SQLite"), slog.String("file", db.file)}
	case schema.MySQL:
		return []any{slog.String("engine", "MySQL"), slog.String("address", db.mysql.Addr), slog.String("database", db.mysql.DBName)}
	}
	return []any{
		slog.String("engine", "PostgreSQL"), slog.String("address", strings.Join(postgresHosts(db.postgres), ",")),
		slog.String("database", db.postgres.Database),
	}
}

// postgresHosts returns the addresses or sockets that a URL names, in order and without duplicates. pgx lists some
// twice, with TLS and without.
func postgresHosts(config *pgx.ConnConfig) (hosts []string) {
	add := func(host string, port uint16) {
		if at := net.JoinHostPort(host, strconv.Itoa(int(port))); !slices.Contains(hosts, at) {
			hosts = append(hosts, at)
		}
	}
	add(config.Host, config.Port)
	for _, other := range config.Fallbacks {
		add(other.Host, other.Port)
	}
	return hosts
}

const urlForms = "the database is named by postgres://user:password@host/database, host=… dbname=…, " +
	"mysql://user:password@host/database, user:password@tcp(host)/database or sqlite:PATH"

var (
	scheme   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)
	keyword  = regexp.MustCompile(`^\s*[A-Za-z_]+\s*=`)
	mysqlDSN = regexp.MustCompile(`^([^/].*@)?([a-z0-9]+\(.*\))?/[^/]*$`)
)

// openURL opens the database that a URL or a driver's own DSN names.
func openURL(named string) (*database, error) {
	switch s := strings.ToLower(scheme.FindString(named)); {
	case strings.HasPrefix(strings.ToLower(named), "sqlite:"):
		return openSQLiteURL(named[len("sqlite:"):])
	case s == "postgres://", s == "postgresql://":
		if err := checkURL(named[len(s):]); err != nil {
			return nil, err
		}
		return openPostgres(s + named[len(s):])
	case s == "mysql://", s == "mariadb://":
		if err := checkURL(named[len(s):]); err != nil {
			return nil, err
		}
		return openMySQLURL(named)
	case s != "":
		return nil, errors.New("this kind of database URL is not known; " + urlForms)
	case keyword.MatchString(named):
		return openPostgres(named)
	case mysqlDSN.MatchString(named):
		config, err := gomysql.ParseDSN(named)
		if err != nil {
			return nil, errors.New("the MySQL DSN cannot be parsed; it should look like user:password@tcp(host:3306)/database")
		}
		return openMySQL(config)
	}
	return nil, errors.New("this is not the name of a database; " + urlForms)
}

// checkURL refuses a URL with a / ? or # in the password that is not percent-encoded. A parser would take a part of the
// password for a host, a port or a database, and errors would show it.
func checkURL(afterScheme string) error {
	if i := strings.IndexAny(afterScheme, "/?#"); i >= 0 && strings.Contains(afterScheme[i:], "@") {
		return errors.New("the database URL has an @ after a / ? or #: percent-encode what is special in its password " +
			"(/ is %2F, ? is %3F, # is %23, @ is %40)")
	}
	return nil
}

func openPostgres(dsn string) (*database, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, errors.New("the PostgreSQL URL cannot be parsed; it should look like postgres://user:password@host:5432/database, " +
			"with what is special in the password percent-encoded")
	}
	if config.ConnectTimeout == 0 && !connector.ShareTime(config, connectTimeout) {
		config.ConnectTimeout = connectTimeout
	}
	delete(config.RuntimeParams, "standard_conforming_strings") // pgx's simple protocol, which the doctor uses, needs the default
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "sqllock"
	}
	return &database{DB: sqlx.NewDb(stdlib.OpenDB(*preparingNothing(config)), "pgx"), dialect: schema.Postgres, postgres: config}, nil
}

// preparingNothing returns a configuration with which pgx prepares no statements. Behind a pooler each statement may
// run in another session, and preparing a statement that runs once costs an additional round trip.
func preparingNothing(config *pgx.ConnConfig) *pgx.ConnConfig {
	config = config.Copy()
	if config.DefaultQueryExecMode != pgx.QueryExecModeSimpleProtocol { // the user chose it, and it prepares nothing either
		config.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	return config
}

// prepareIfDirect reopens a PostgreSQL database the way a Go program would open this URL, with prepared statements. It
// does nothing if there is a pooler or if the database cannot be reached.
func (db *database) prepareIfDirect(ctx context.Context) {
	if db.dialect != schema.Postgres {
		return
	}
	if between, err := doctor.BehindPooler(ctx, db.DB); err == nil && !between {
		db.close()
		db.DB = sqlx.NewDb(stdlib.OpenDB(*db.postgres), "pgx")
	}
}

// openMySQLURL converts a URL to a driver configuration. The query of the URL has the driver's parameters.
func openMySQLURL(named string) (*database, error) {
	bad := errors.New("the MySQL URL cannot be parsed; it should look like mysql://user:password@host:3306/database, " +
		"with what is special in the password percent-encoded, and with parameters of the Go driver, if any")
	u, err := url.Parse(named)
	if err != nil || u.Fragment != "" || strings.ContainsAny(u.Host, "()@/") {
		return nil, bad
	}
	host, port := u.Hostname(), u.Port()
	if strings.Contains(host, ":") && !strings.HasPrefix(u.Host, "[") { // user:password:port without a host
		return nil, bad
	}
	if host == "" {
		host = "127.0.0.1"
	}
	if port == "" {
		port = "3306"
	}
	// The driver searches for the last /, and unescapes the values.
	dsn := "tcp(" + net.JoinHostPort(host, port) + ")/?" + strings.ReplaceAll(u.RawQuery, "/", "%2F")
	config, err := gomysql.ParseDSN(dsn)
	if err != nil {
		return nil, bad
	}
	config.User = u.User.Username()
	config.Passwd, _ = u.User.Password()
	config.DBName = strings.TrimPrefix(u.Path, "/")
	return openMySQL(config)
}

// credential matches parameters that other drivers accept. This driver would send them to the server as variables to
// set, and the server would show the value in its error, or change the password.
var credential = regexp.MustCompile(`(?i)^(user(name)?|pass(w(or)?)?d|pwd)$`)

func openMySQL(config *gomysql.Config) (*database, error) {
	for key := range config.Params {
		if credential.MatchString(key) {
			return nil, errors.New("the MySQL URL or DSN has a user or a password among its parameters: they stand before the @, as in user:password@…")
		}
	}
	// These would rename columns, truncate results, or open transactions that nobody ends.
	config.ColumnsWithAlias = false
	maps.DeleteFunc(config.Params, func(key, _ string) bool {
		return strings.EqualFold(key, "sql_select_limit") || strings.EqualFold(key, "completion_type")
	})
	if config.Timeout == 0 {
		config.Timeout = connectTimeout
	}
	// Every statement has a deadline of its own, and a session lock waits for a long time.
	config.ReadTimeout, config.WriteTimeout = 0, 0
	config.Logger = &gomysql.NopLogger{} // what matters is returned as an error
	db, err := connectMySQL(config, "sqllock")
	if err != nil {
		return nil, errors.New("the parameters of the MySQL URL or DSN do not go together")
	}
	return &database{DB: sqlx.NewDb(db, "mysql"), dialect: schema.MySQL, mysql: config}, nil
}

// connectMySQL opens a pool whose connections tell the server that they belong to this program.
func connectMySQL(config *gomysql.Config, program string) (*sql.DB, error) {
	config = config.Clone()
	program = strings.NewReplacer(",", " ", ":", " ").Replace(program) // these characters separate attributes
	config.ConnectionAttributes = strings.TrimPrefix(config.ConnectionAttributes+",program_name:"+program, ",")
	c, err := gomysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(timely{c, config.Timeout}), nil
}

// timely bounds the whole connection setup. The driver's own timeout covers only the dial.
type timely struct {
	driver.Connector
	limit time.Duration
}

// Connect implements driver.Connector.
func (c timely) Connect(ctx context.Context) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	return c.Connector.Connect(ctx)
}

// openSQLiteURL opens the path after "sqlite:", which is used literally.
func openSQLiteURL(path string) (*database, error) {
	if rest, ok := strings.CutPrefix(path, "//"); ok {
		if !strings.HasPrefix(rest, "/") {
			return nil, errors.New("sqlite:// needs a third slash and an absolute path; a relative one is sqlite:PATH")
		}
		path = rest
		if drive := strings.TrimPrefix(rest, "/"); filepath.VolumeName(drive) != "" {
			path = drive
		}
	}
	switch path {
	case "":
		return nil, errors.New("sqlite: needs a path, as in sqlite:/var/lib/locks.db")
	case ":memory:":
		return nil, errors.New("a database in memory locks nobody out; name a file, as in sqlite:/var/lib/locks.db")
	}
	return openSQLite(path)
}

func openSQLite(path string) (*database, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	file := path
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // C:/…
		path = "/" + path
	}
	uri := url.URL{
		Scheme: "file",
		Opaque: (&url.URL{Path: path}).EscapedPath(),
		// The busy timeout comes first: switching to WAL may have to wait, too.
		RawQuery: "_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)",
	}
	db, err := sqlx.Open("sqlite", uri.String())
	if err != nil {
		return nil, err
	}
	return &database{DB: db, dialect: schema.SQLite, file: file}, nil
}

// close closes the pool that schema used. An error has no remedy.
func (db *database) close() { _ = db.Close() }

// makeFolder creates the folder of the user's own file, readable by that user only.
func (db *database) makeFolder() error {
	if db.folder == "" {
		return nil
	}
	if err := os.MkdirAll(db.folder, 0o700); err != nil {
		return fmt.Errorf("no database is named by --db, --db-file or SQLLOCK_DB, and there is no place for one: %w", err)
	}
	return nil
}

// prepare makes an SQLite database ready for leases. On a server it does nothing: only the schema command creates
// tables there.
func (db *database) prepare(ctx context.Context, t schema.Tables) error {
	if db.dialect != schema.SQLite {
		return nil
	}
	if err := db.makeFolder(); err != nil {
		return err
	}
	if err := schema.Apply(ctx, db.DB.DB, db.dialect, t); err != nil {
		return fmt.Errorf("create the tables in the SQLite file: %w", err)
	}
	return nil
}
