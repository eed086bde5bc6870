package database

import (
	"errors"
	"regexp"
	"strings"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock/internal/dburl"
)

const urlForms = "the database is named by postgres://user:password@host/database, host=… dbname=…, " +
	"mysql://user:password@host/database, user:password@tcp(host)/database or sqlite:PATH"

var (
	scheme   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)
	keyword  = regexp.MustCompile(`^\s*[A-Za-z_]+\s*=`)
	mysqlDSN = regexp.MustCompile(`^([^/].*@)?([a-z0-9]+\(.*\))?/[^/]*$`)
	// mysqlPath matches a DSN with a / in a parameter, such as a file's path: what is before the parameters, and these.
	mysqlPath = regexp.MustCompile(`^((?:[^/].*@)?[a-z0-9]+\(.*\)/[^/?]*\?)(.*)$`)
)

// openURL opens the database that a URL or a driver's own DSN names.
func openURL(named string) (*Database, error) {
	switch s := strings.ToLower(scheme.FindString(named)); {
	case dburl.IsMisread(named):
		return nil, errors.New("the database URL has a second @, or one after a / ? or #: percent-encode what is special in its password " +
			"(/ is %2F, ? is %3F, # is %23, @ is %40)")
	case strings.HasPrefix(strings.ToLower(named), "sqlite:"):
		return openSQLiteURL(named[len("sqlite:"):])
	case s == "postgres://", s == "postgresql://":
		return openPostgres(s + named[len(s):])
	case s == "mysql://", s == "mariadb://":
		return openMySQLURL(named)
	case s != "":
		return nil, errors.New("this kind of database URL is not known; " + urlForms)
	case keyword.MatchString(named):
		return openPostgres(named)
	case mysqlDSN.MatchString(named):
		return openMySQLDSN(named)
	case mysqlPath.MatchString(named):
		parts := mysqlPath.FindStringSubmatch(named)
		return openMySQLDSN(parts[1] + strings.ReplaceAll(parts[2], "/", "%2F")) // the driver searches for the last /
	}
	return nil, errors.New("this is not the name of a database; " + urlForms)
}

func openMySQLDSN(dsn string) (*Database, error) {
	config, err := gomysql.ParseDSN(dsn)
	if err != nil {
		return nil, errors.New("the MySQL DSN cannot be parsed; it should look like user:password@tcp(host:3306)/database")
	}
	return openMySQL(config)
}
