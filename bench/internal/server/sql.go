package server

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/url"
	"os/exec"
	"strconv"
	"strings"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock/bench/internal/lock"
	"github.com/sqllock/sqllock/schema"
	"github.com/sqllock/sqllock/sqltest"
)

// settings are those of production as far as they matter: no confirmed commit is lost.
func settings(e lock.Engine) (sqltest.Engine, []sqltest.Option) {
	connections := sqltest.Setting("max_connections", strconv.Itoa(MaxConnections))
	durable := sqltest.Setting("innodb_flush_log_at_trx_commit", "1")
	switch e {
	case lock.Postgres:
		return sqltest.EnginePostgres, []sqltest.Option{
			connections, sqltest.Setting("fsync", "on"), sqltest.Setting("full_page_writes", "on"),
			sqltest.Setting("shared_preload_libraries", "pg_stat_statements"),
		}
	case lock.MySQL:
		return sqltest.EngineMySQL, []sqltest.Option{durable, connections}
	default:
		return sqltest.EngineMariaDB, []sqltest.Option{durable, connections}
	}
}

// startSQL starts a SQL server from where the environment says (see package sqltest), with the tables of leases.
func startSQL(ctx context.Context, e lock.Engine) (*Server, error) {
	engine, options := settings(e)
	var db *sqltest.Database
	k, err := keep(func(k *keeper) { db = sqltest.Start(k, engine, options...).Database(k) })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e, err)
	}
	s := &Server{Engine: e, Version: strings.Replace(db.Server, " from ", ", ", 1), Address: db.DSN, end: k.end}
	if err := s.prepare(ctx, db); err != nil {
		k.end()
		return nil, fmt.Errorf("%s: %w", e, err)
	}
	return s, nil
}

func (s *Server) prepare(ctx context.Context, db *sqltest.Database) error {
	dialect, err := schema.DialectOf(db.DriverName())
	if err != nil {
		return err
	}
	if err := schema.Apply(ctx, db.DB.DB, dialect, schema.Tables{}); err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	if s.Engine == lock.Postgres {
		err = s.preparePostgres(ctx, db.DB.DB)
	} else {
		err = s.prepareMySQL(db.DB.DB)
	}
	if err != nil {
		return err
	}
	s.root = containerOrListener(ctx, s.host)
	return nil
}

func (s *Server) preparePostgres(ctx context.Context, db *sql.DB) error {
	if _, err := db.ExecContext(ctx, "CREATE EXTENSION pg_stat_statements"); err != nil {
		return err
	}
	u, err := url.Parse(s.Address)
	if err != nil {
		return err
	}
	s.host = u.Host
	s.at = func(host string) string {
		other := *u
		other.Host = host
		return other.String()
	}
	s.counter = func(ctx context.Context) (n int64, err error) {
		err = db.QueryRowContext(ctx, `SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements
			WHERE query NOT LIKE '%pg_stat_statements%'`).Scan(&n)
		return n, err
	}
	return nil
}

func (s *Server) prepareMySQL(db *sql.DB) error {
	config, err := gomysql.ParseDSN(s.Address)
	if err != nil {
		return err
	}
	s.host = config.Addr
	s.at = func(host string) string {
		other := config.Clone()
		other.Addr = host
		return other.FormatDSN()
	}
	s.counter = func(ctx context.Context) (int64, error) {
		var name string
		var all, own int64
		if err := db.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Questions'").Scan(&name, &all); err != nil {
			return 0, err
		}
		err := db.QueryRowContext(ctx, "SHOW SESSION STATUS LIKE 'Questions'").Scan(&name, &own)
		return all - own, err
	}
	return nil
}

// containerOrListener returns the first process of the server on a port of this machine, which may be in a container.
func containerOrListener(ctx context.Context, host string) int {
	_, port, err := net.SplitHostPort(host)
	if err != nil {
		return 0
	}
	id, err := exec.CommandContext(ctx, "docker", "ps", "-q", "--filter", "publish="+port).Output()
	if name := strings.TrimSpace(string(id)); err == nil && name != "" {
		out, err := exec.CommandContext(ctx, "docker", "inspect", "-f", "{{.State.Pid}}", name).Output()
		if err != nil {
			return 0
		}
		pid, _ := strconv.Atoi(strings.TrimSpace(string(out))) // 0 if it is not on this machine
		return pid
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return 0
	}
	return listener(n)
}
