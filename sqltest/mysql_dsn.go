//go:build !sqltest_no_mysql

package sqltest

import (
	"database/sql"
	"errors"
	"net/url"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock/internal/dburl"
)

// parse also accepts URLs, because every other tool does.
func (mysqlDSN) parse(dsn string) (string, string, error) {
	config, err := mysql.ParseDSN(dsn)
	if scheme, _, ok := strings.Cut(dsn, "://"); ok && (scheme == "mysql" || scheme == "mariadb") {
		config, err = fromURL(dsn)
	}
	if err != nil || dburl.IsMisread(dsn) {
		return "", "", errors.New("not a DSN of go-sql-driver/mysql")
	}
	return config.FormatDSN(), config.Passwd, nil
}

func fromURL(dsn string) (*mysql.Config, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return nil, err
	}
	host := u.Host
	if u.Port() == "" {
		host += ":3306"
	}
	// The driver's own parser reads the parameters.
	config, err := mysql.ParseDSN("tcp(" + host + ")/?" + u.RawQuery)
	if err != nil {
		return nil, err
	}
	config.User = u.User.Username()
	config.Passwd, _ = u.User.Password()
	config.DBName = strings.TrimPrefix(u.Path, "/")
	return config, nil
}

func (mysqlDSN) private(address, password string) string {
	config := mysql.NewConfig()
	config.User = "root"
	config.Passwd = password
	config.Net = "tcp"
	config.Addr = address
	config.ParseTime = true
	return config.FormatDSN()
}

func (mysqlDSN) in(dsn, database string) (string, error) {
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return "", err
	}
	config.DBName = database
	return config.FormatDSN(), nil
}

func (mysqlDSN) endpoint(dsn string) (network, address string, err error) {
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return "", "", err
	}
	return config.Net, config.Addr, nil
}

func (mysqlDSN) at(dsn, address string) (string, error) {
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return "", err
	}
	config.Net, config.Addr = "tcp", address
	return config.FormatDSN(), nil
}

func (mysqlDSN) userOf(dsn string) string {
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return ""
	}
	return config.User
}

func (mysqlDSN) open(dsn string) (*sql.DB, error) {
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	config.Logger = &mysql.NopLogger{}
	config.MultiStatements = true
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// withParam returns a DSN that sets a variable of each session to an expression.
func withParam(dsn, name, expression string) (string, error) {
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return "", err
	}
	if config.Params == nil {
		config.Params = make(map[string]string)
	}
	config.Params[name] = expression
	return config.FormatDSN(), nil
}

func (mysqlDSN) as(dsn, user, password string) (string, error) {
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return "", err
	}
	config.User, config.Passwd = user, password
	return config.FormatDSN(), nil
}
