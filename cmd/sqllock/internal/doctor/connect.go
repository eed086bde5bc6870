package doctor

import (
	"errors"
	"slices"
	"strings"

	gomysql "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sqllock/sqllock/schema"
)

// connectAdvice returns what to do when connecting fails.
func (p *patient) connectAdvice(err error) string {
	const (
		who   = "check the user and the password in the URL, and whether the server lets this user in from here"
		where = "check the name of the database in the URL, and whether this user may use it"
		full  = "the server has no connection left: raise max_connections, or end some"
	)
	var postgres *pgconn.PgError
	var mysql *gomysql.MySQLError
	switch {
	case p.Dialect == schema.SQLite:
		return "check the path, and whether this user may write the file and its folder"
	case errors.As(err, &postgres) && strings.HasPrefix(postgres.Code, "28"):
		return who
	case errors.As(err, &postgres) && postgres.Code == "3D000":
		return where
	case errors.As(err, &postgres) && postgres.Code == "53300":
		return full
	case errors.As(err, &mysql) && slices.Contains([]uint16{1045, 1698}, mysql.Number):
		return who
	case errors.As(err, &mysql) && slices.Contains([]uint16{1044, 1049}, mysql.Number):
		return where
	case errors.As(err, &mysql) && slices.Contains([]uint16{1040, 1203, 1226}, mysql.Number):
		return full
	}
	return "check the host and the port in the URL, whether the server runs, and the firewalls in between"
}
