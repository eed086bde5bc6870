package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"maps"
	"net"
	"net/url"
	"regexp"
	"strings"
	"time"

	gomysql "github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/schema"
)

// answerTimeout bounds each wait for the next part of an answer of MySQL or MariaDB. Statements have deadlines of their own, but
// the driver minds none while a transaction ends, or while it reads past the row that was asked for. No statement of this program
// waits for so long: a slice of a wait is shorter, and schema apply waits for a table for a second at a time.
const answerTimeout = 20 * time.Second

// openMySQLURL converts a URL to a driver configuration. The query of the URL has the driver's parameters.
func openMySQLURL(named string) (*Database, error) {
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

func openMySQL(config *gomysql.Config) (*Database, error) {
	for key := range config.Params {
		if credential.MatchString(key) {
			return nil, errors.New("the MySQL URL or DSN has a user or a password among its parameters: they stand before the @, as in user:password@…")
		}
	}
	if err := trustFile(config); err != nil {
		return nil, err
	}
	// These would rename columns, truncate results, or open transactions that nobody ends.
	config.ColumnsWithAlias = false
	maps.DeleteFunc(config.Params, func(key, _ string) bool {
		return strings.EqualFold(key, "sql_select_limit") || strings.EqualFold(key, "completion_type")
	})
	config.AllowAllFiles = false // a server, or who says to be it, could ask for every file of this machine
	if config.Timeout == 0 {
		config.Timeout = ConnectTimeout
	}
	// Not those of the URL, which may be shorter than a session lock waits at a time.
	config.ReadTimeout, config.WriteTimeout = answerTimeout, 0
	config.Logger = &gomysql.NopLogger{} // what matters is returned as an error
	db := &Database{Dialect: schema.MySQL, mysql: config}
	renew := func(_ context.Context, c *gomysql.Config) error {
		if db.password != nil {
			c.Passwd = db.password(c.Passwd)
		}
		return nil
	}
	_ = config.Apply(gomysql.BeforeConnect(renew)) // this option does not fail
	pool, err := connectMySQL(config, "sqllock")
	if err != nil {
		return nil, errors.New("the parameters of the MySQL URL or DSN do not go together")
	}
	db.DB = sqlx.NewDb(pool, "mysql")
	return db, nil
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

func (c timely) Connect(ctx context.Context) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	return c.Connector.Connect(ctx)
}
