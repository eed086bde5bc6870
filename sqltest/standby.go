package sqltest

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/jmoiron/sqlx"
)

// Standby is a server that follows another one and only reads, by streaming replication. It may be stopped, killed and paused
// like every Server.
type Standby struct {
	*Server
	primary *Server
}

// primary is what a standby is made from.
type primary struct{ host, port, password string }

// Standby starts a standby of this PostgreSQL server for tb, from the same source. It follows at once, unless SetLag says
// otherwise. It ends with tb, before its primary. On other engines Standby ends the test with Fatalf.
func (s *Server) Standby(tb TB) *Standby {
	tb.Helper()
	if s.srv.product.engine() != EnginePostgres {
		tb.Fatalf("sqltest: a standby is one of PostgreSQL, not of %s", s)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patiently)
	defer cancel()
	srv, err := s.srv.follow(ctx, s.order)
	if err != nil {
		tb.Fatalf("sqltest: a standby of %s: %v", s, redactError(s.srv.product, s.srv.record.DSN, err))
	}
	standby := &Standby{Server: newServer(tb, srv, s.order), primary: s}
	return standby
}

// follow starts a standby of s, with the same settings.
func (s server) follow(ctx context.Context, o order) (server, error) {
	_, password, err := s.product.parse(s.record.DSN)
	if err != nil {
		return server{}, err
	}
	address, err := s.host.inside(ctx)
	if err != nil {
		return server{}, err
	}
	o.primary = &primary{password: password}
	if o.primary.host, o.primary.port, err = net.SplitHostPort(address); err != nil {
		return server{}, err
	}
	// In an image, "all" databases are not the one of replication.
	err = s.administer(func(ctx context.Context, admin *sql.DB) error { //nolint:contextcheck // it has its own, as everywhere
		for _, statement := range []string{
			"COPY (SELECT 'host replication all all scram-sha-256') TO PROGRAM 'cat >>pg_hba.conf'", "SELECT pg_reload_conf()",
		} {
			if _, err := admin.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return server{}, err
	}
	st, err := openState()
	if err != nil {
		return server{}, err
	}
	return bootFrom(ctx, st, s.product, s.from, o)
}

// Database opens a database of the primary on the standby, for tb. It appears there when the standby has caught up with the
// primary, which Database waits for.
func (s *Standby) Database(tb TB, db *Database) *Database {
	tb.Helper()
	s.CatchUp()
	network, address, err := s.srv.product.endpoint(s.srv.record.DSN)
	if err != nil || network != "tcp" {
		tb.Fatalf("sqltest: the address of %s: %s %v", s, network, err)
	}
	here := *db
	here.Server = s.String()
	here.log = s.srv.inst.logAfter()
	if here.DSN, err = s.srv.product.at(db.DSN, address); err == nil {
		here.DB, err = sqlx.Open(s.srv.product.driver(), here.DSN)
	}
	if err != nil {
		tb.Fatalf("sqltest: a database on %s: %v", s, redactError(s.srv.product, db.DSN, err))
	}
	tb.Cleanup(func() { _ = here.Close() })
	return &here
}

// SetLag makes the standby show each transaction so much later than the primary has committed it. Zero ends that.
func (s *Standby) SetLag(lag time.Duration) {
	s.tb.Helper()
	s.do("set the lag of", fmt.Sprintf("ALTER SYSTEM SET recovery_min_apply_delay = '%dms'", lag.Milliseconds()), "SELECT pg_reload_conf()")
	s.await("set the lag of", func(ctx context.Context, db *sql.DB) (is bool, err error) {
		err = db.QueryRowContext(ctx, "SELECT setting = $1 FROM pg_settings WHERE name = 'recovery_min_apply_delay'",
			strconv.FormatInt(lag.Milliseconds(), 10)).Scan(&is)
		return is, err
	})
}

// CatchUp waits until the standby shows what the primary has committed by now. With a lag that takes as long.
func (s *Standby) CatchUp() {
	s.tb.Helper()
	var now string
	err := s.primary.srv.administer(func(ctx context.Context, admin *sql.DB) error {
		return admin.QueryRowContext(ctx, "SELECT pg_current_wal_lsn()::text").Scan(&now)
	})
	if err != nil {
		s.tb.Fatalf("sqltest: catch up with %s: %v", s.primary, err)
	}
	s.await("catch up", func(ctx context.Context, db *sql.DB) (is bool, err error) {
		err = db.QueryRowContext(ctx, "SELECT coalesce(pg_last_wal_replay_lsn() >= $1::text::pg_lsn, false)", now).Scan(&is)
		return is, err
	})
}

// Promote makes the standby a primary, which takes writes. The server that it has followed does not notice.
func (s *Standby) Promote() {
	s.tb.Helper()
	s.do("promote", "SELECT pg_promote()")
	s.await("promote", func(ctx context.Context, db *sql.DB) (is bool, err error) {
		err = db.QueryRowContext(ctx, "SELECT NOT pg_is_in_recovery()").Scan(&is)
		return is, err
	})
}

func (s *Standby) do(what string, statements ...string) {
	s.tb.Helper()
	err := s.srv.administer(func(ctx context.Context, admin *sql.DB) error {
		for _, statement := range statements {
			if _, err := admin.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.tb.Fatalf("sqltest: %s %s: %v", what, s, err)
	}
}

func (s *Standby) await(what string, is func(context.Context, *sql.DB) (bool, error)) {
	s.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patiently)
	defer cancel()
	db, done, err := s.srv.admin()
	if err == nil {
		defer done()
		err = await(ctx, 5*time.Millisecond, func() (bool, error) { return is(ctx, db) })
	}
	if err != nil {
		s.tb.Fatalf("sqltest: %s %s: %v", what, s, err)
	}
}

// followPrimary is the script with which the container of a standby begins. It runs the image's own entry point afterwards.
const followPrimary = `set -e
if [ ! -s "$PGDATA/PG_VERSION" ]; then
	PATH=$PATH:$(echo /usr/lib/postgresql/*/bin)
	mkdir -p "$PGDATA"
	pg_basebackup -D "$PGDATA" -R -X stream -c fast -h "$SQLTEST_PRIMARY" -p "$SQLTEST_PRIMARY_PORT" -U postgres -w
	chown -R "$0" "$PGDATA"
	chmod 700 "$PGDATA"
fi
exec "$@"`

// follow makes the container begin with a copy of its primary.
func (c *container) follow(p *primary) error {
	found, err := c.client().InspectImage(c.run.Repository + ":" + c.run.Tag)
	if err != nil {
		return err
	}
	if c.run.Entrypoint != nil {
		found.Config.Entrypoint = c.run.Entrypoint
	}
	if len(found.Config.Entrypoint) == 0 {
		return errors.New("an image without an entry point cannot be a standby: name another one")
	}
	c.run.Entrypoint = append([]string{"sh", "-c", followPrimary, c.image.product.user()}, found.Config.Entrypoint...)
	c.run.Env = append(c.run.Env, "SQLTEST_PRIMARY="+p.host, "SQLTEST_PRIMARY_PORT="+p.port, "PGPASSWORD="+p.password)
	return nil
}

// inside returns the address that other containers see.
func (c *container) inside(ctx context.Context) (string, error) {
	info, err := c.client().InspectContainerWithContext(c.run.Name, ctx)
	if err != nil {
		return "", err
	}
	ip := ""
	if info.NetworkSettings != nil {
		ip = cmp.Or(info.NetworkSettings.IPAddress, info.NetworkSettings.Networks["bridge"].IPAddress) // the first is deprecated
	}
	if ip == "" {
		return "", errors.New("the container has no address in Docker's default network, where a standby would look for it")
	}
	return net.JoinHostPort(ip, c.image.product.port()), nil
}
