package database

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/doctor"
	"github.com/sqllock/sqllock/internal/connector"
	"github.com/sqllock/sqllock/schema"
)

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

func openPostgres(dsn string) (*Database, error) {
	config, err := pgx.ParseConfig(dsn)
	var file *fs.PathError
	switch {
	case errors.As(err, &file): // of a certificate
		return nil, fmt.Errorf("a file that the PostgreSQL URL names cannot be read: %w", file.Err)
	case err != nil:
		return nil, errors.New("the PostgreSQL URL cannot be parsed; it should look like postgres://user:password@host:5432/database, " +
			"with what is special in the password percent-encoded")
	}
	if config.ConnectTimeout == 0 && !connector.ShareTime(config, ConnectTimeout) {
		config.ConnectTimeout = ConnectTimeout
	}
	delete(config.RuntimeParams, "standard_conforming_strings") // pgx's simple protocol, which the doctor uses, needs the default
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "sqllock"
	}
	db := &Database{Dialect: schema.Postgres, postgres: config}
	db.DB = db.connectPostgres(preparingNothing(config))
	return db, nil
}

func (db *Database) connectPostgres(config *pgx.ConnConfig) *sqlx.DB {
	renew := func(_ context.Context, c *pgx.ConnConfig) error {
		if db.password != nil {
			c.Password = db.password(c.Password)
		}
		return nil
	}
	return sqlx.NewDb(stdlib.OpenDB(*config, stdlib.OptionBeforeConnect(renew)), "pgx")
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

// PrepareIfDirect reopens a PostgreSQL database the way a Go program would open this URL, with prepared statements. It
// does nothing if there is a pooler or if the database cannot be reached.
func (db *Database) PrepareIfDirect(ctx context.Context) {
	if db.Dialect != schema.Postgres {
		return
	}
	if between, err := doctor.BehindPooler(ctx, db.DB); err == nil && !between {
		db.Close()
		db.DB = db.connectPostgres(db.postgres)
	}
}
