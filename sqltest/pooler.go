package sqltest

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/jmoiron/sqlx"
)

// PgBouncer starts a PgBouncer for tb in front of this database of PostgreSQL, and opens the database through it. It pools
// transactions. An option is [Setting], for a line of its configuration: Setting("pool_mode", "session"). It ends with tb.
//
// The program pgbouncer must be installed on this machine, or PgBouncer ends the test with Fatalf. From version 1.21 on it keeps
// prepared statements. Before, or with Setting("max_prepared_statements", "0"), the DSN tells pgx not to use any.
func (db *Database) PgBouncer(tb TB, opts ...Option) *Database {
	tb.Helper()
	o := optionsOf(opts)
	if db.Engine != EnginePostgres {
		tb.Fatalf("sqltest: PgBouncer is for PostgreSQL, not for %s", db.Server)
	}
	if o.version != "" || o.tls || len(o.extensions) > 0 {
		tb.Fatalf("sqltest: the only option of PgBouncer is Setting")
	}
	program, err := findPgBouncer()
	if err != nil {
		if isSet("SQLTEST_SKIP") {
			tb.Skipf("sqltest: SQLTEST_SKIP: %v", err)
		}
		tb.Fatalf("sqltest: %v", err)
	}
	p, _ := productOf(db.Engine)
	pooled, inst, err := db.pool(p, program, o.settings)
	for errors.Is(err, errPortTaken) {
		pooled, inst, err = db.pool(p, program, o.settings)
	}
	if err != nil {
		tb.Fatalf("sqltest: a PgBouncer before %s: %v", db.Server, redactError(p, db.DSN, err))
	}
	tb.Cleanup(func() {
		tb.Helper()
		if err := errors.Join(pooled.Close(), inst.end()); err != nil {
			tb.Logf("sqltest: end a PgBouncer: %v", err)
		}
	})
	return pooled
}

func findPgBouncer() (string, error) {
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("there is no pgbouncer on the PATH or in /usr/sbin: install it, as with apt-get install pgbouncer")
}

// errPortTaken says that another program has taken the port that was free.
var errPortTaken = errors.New("another program has taken the port")

// pool starts a PgBouncer, whose folder ends it, and opens db through it.
func (db *Database) pool(p product, program string, settings []setting) (_ *Database, _ *instance, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patiently)
	defer cancel()
	st, err := openState()
	if err != nil {
		return nil, nil, err
	}
	inst, err := st.newInstance("own-pgbouncer")
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, inst.end())
		}
	}()
	port, err := freePort(ctx)
	if err != nil {
		return nil, nil, err
	}
	lines, prepared := poolerLines(settings, knowsPrepared(ctx, program))
	entry, dsn, err := p.pooled(db.DSN, "127.0.0.1:"+port, !prepared)
	if err != nil {
		return nil, nil, err
	}
	config := fmt.Sprintf(`[databases]
%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = any
%s
`, entry, port, strings.Join(lines, "\n"))
	if err := startPooler(ctx, inst, program, config, "127.0.0.1:"+port); err != nil {
		return nil, nil, err
	}
	pooled := *db
	pooled.DSN = dsn
	pooled.DB, err = sqlx.Open(p.driver(), dsn)
	return &pooled, inst, err
}

// poolerLines returns lines of a configuration, and whether clients can use prepared statements. Of lines with the same name
// PgBouncer takes the last. Versions 1.21 to 1.23 know prepared statements, but keep none by default.
func poolerLines(settings []setting, knowsPrepared bool) (lines []string, prepared bool) {
	all := []setting{{"pool_mode", "transaction"}}
	if knowsPrepared {
		all = append(all, setting{"max_prepared_statements", "200"})
	}
	last := make(map[string]string)
	for _, s := range append(all, settings...) {
		last[s.name] = s.value
		lines = append(lines, s.name+" = "+s.value)
	}
	return lines, last["pool_mode"] == "session" || knowsPrepared && last["max_prepared_statements"] != "0"
}

// knowsPrepared reports whether a PgBouncer supports prepared statements.
func knowsPrepared(ctx context.Context, program string) bool {
	out, _ := exec.CommandContext(ctx, program, "--version").Output()
	var major, minor int
	_, _ = fmt.Sscanf(string(out), "PgBouncer %d.%d", &major, &minor)
	return major > 1 || minor >= 21
}
