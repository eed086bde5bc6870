package doctor

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/sqllock/sqllock/internal/version"
)

var postgresChecks = []check{
	{"server", every, postgresServer},
	{"pooler", none, postgresPooler},
	{"hosts", none, postgresHosts},
	{"encryption", none, encryption},
	{"role", lease, postgresRole},
	{"replication", lease, postgresReplication},
	{"idle", session, postgresIdle},
	{"keepalives", none, postgresKeepalives},
	{"connections", every, postgresConnections},
	{"locks", session | transaction, postgresLocks},
	{"defaults", transaction, postgresDefaults},
	{"clock", none, clock},
	{"tables", lease, tables},
	{"write", lease, write},
	{"vacuum", lease, postgresVacuum},
	{"create", none, postgresCreate},
}

func postgresServer(ctx context.Context, p *patient) (Finding, error) {
	var server struct{ Version, Number string }
	err := p.DB.GetContext(ctx, &server, "SELECT version() AS version, pg_catalog.current_setting('server_version_num') AS number")
	if err != nil {
		return Finding{}, err
	}
	if p.engine = version.Relative(server.Version); p.engine != "" {
		return notTested(p.engine, server.Version), nil
	}
	name, _, _ := strings.Cut(server.Version, " on ") // cut off how it was built
	if number, _ := strconv.Atoi(server.Number); number < 120000 {
		return beware("use PostgreSQL 12 or later", "%s is older than what sqllock is made for", name), nil
	}
	return fine("%s", name), nil
}

const toThePrimary = "connect to the primary"

func postgresRole(ctx context.Context, p *patient) (Finding, error) {
	var is struct{ Standby, ReadOnly bool }
	err := p.DB.GetContext(ctx, &is,
		"SELECT pg_is_in_recovery() AS standby, pg_catalog.current_setting('transaction_read_only')::boolean AS readonly")
	switch {
	case err != nil:
		return Finding{}, err
	case is.Standby:
		return bad(toThePrimary, "a standby: it cannot be written to, and its locks are not known to the primary"), nil
	case is.ReadOnly:
		return bad(toThePrimary+", or set default_transaction_read_only = off", "read-only, by default_transaction_read_only"), nil
	}
	return fine("a primary that can be written to"), nil
}

func postgresReplication(ctx context.Context, p *patient) (Finding, error) {
	var standbys int
	err := p.DB.GetContext(ctx, &standbys, "SELECT CASE WHEN pg_is_in_recovery() THEN -1 ELSE (SELECT count(*) FROM pg_stat_replication) END")
	if err != nil || standbys < 0 { // a standby does not know what its primary waits for
		return Finding{}, err
	}
	s, err := p.settings(ctx, "synchronous_standby_names", "synchronous_commit")
	if err != nil {
		return Finding{}, err
	}
	return replicated(standbys, s["synchronous_standby_names"], s["synchronous_commit"]), nil
}

// replicated reports what a crash or a failover can lose.
func replicated(standbys int, names, commit string) Finding {
	switch {
	case commit == "off":
		return beware("set synchronous_commit = on, if only for the user of the leases",
			"a crash forgets the last commits (synchronous_commit is off), and so who has a lease")
	case standbys == 0 && names != "" && commit != "local":
		return bad("start a standby, or change synchronous_standby_names",
			"every commit waits for a standby (synchronous_standby_names is %s), and none is connected", names)
	case standbys == 0:
		return fine("no standby is connected")
	case names == "" || commit == "local":
		return beware("set synchronous_standby_names, if no lease may be forgotten",
			"asynchronous, standbys: %d. A failover forgets the leases that were taken just before", standbys)
	}
	return fine("synchronous (%s, synchronous_commit %s), standbys: %d", names, commit, standbys)
}

func postgresIdle(ctx context.Context, p *patient) (Finding, error) {
	const ofSessions, inTransactions = "idle_session_timeout", "idle_in_transaction_session_timeout"
	s, err := p.settings(ctx, ofSessions, inTransactions)
	if err != nil {
		return Finding{}, err
	}
	if s[ofSessions] == "" {
		return beware("use PostgreSQL 14 or later, or a lease",
			"there is no %s: a process that is stopped keeps its session locks until it goes on", ofSessions), nil
	}
	return fine("%s is %s, and session locks set their own; %s is %s: a client that hangs in a transaction keeps its locks %s",
		ofSessions, milliseconds(s[ofSessions]), inTransactions, milliseconds(s[inTransactions]),
		map[bool]string{true: "for ever", false: "for that long"}[s[inTransactions] == "0"]), nil
}

// milliseconds formats a timeout for people.
func milliseconds(setting string) string {
	n, err := strconv.Atoi(setting)
	switch {
	case err != nil:
		return setting
	case n == 0:
		return "off"
	}
	return (time.Duration(n) * time.Millisecond).String()
}

func postgresKeepalives(ctx context.Context, p *patient) (Finding, error) {
	const idle, interval, count = "tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count"
	s, err := p.settings(ctx, idle, interval, count)
	if err != nil {
		return Finding{}, err
	}
	seconds := func(name string) int { n, _ := strconv.Atoi(s[name]); return n }
	if seconds(idle) == 0 {
		return fine("none, as on a local socket"), nil
	}
	return fine("a client that was cut off is noticed after %v, and keeps its transaction locks until then",
		time.Duration(seconds(idle)+seconds(interval)*seconds(count))*time.Second), nil
}

func postgresConnections(ctx context.Context, p *patient) (Finding, error) {
	var used int
	err := p.DB.GetContext(ctx, &used, "SELECT coalesce(sum(numbackends), 0) FROM pg_stat_database")
	if err != nil {
		return Finding{}, err
	}
	s, err := p.settings(ctx, "max_connections", "superuser_reserved_connections", "reserved_connections")
	if err != nil {
		return Finding{}, err
	}
	limit, _ := strconv.Atoi(s["max_connections"])
	superusers, _ := strconv.Atoi(s["superuser_reserved_connections"])
	reserved, _ := strconv.Atoi(s["reserved_connections"]) // new in PostgreSQL 16
	return use("connections", "max_connections", used, limit-superusers-reserved), nil
}

func postgresLocks(ctx context.Context, p *patient) (Finding, error) {
	var used int
	if err := p.DB.GetContext(ctx, &used, "SELECT count(*) FROM pg_locks"); err != nil {
		return Finding{}, err
	}
	s, err := p.settings(ctx, "max_locks_per_transaction", "max_connections", "max_prepared_transactions")
	if err != nil {
		return Finding{}, err
	}
	each, _ := strconv.Atoi(s["max_locks_per_transaction"])
	connections, _ := strconv.Atoi(s["max_connections"])
	prepared, _ := strconv.Atoi(s["max_prepared_transactions"])
	return use("locks", "max_locks_per_transaction", used, each*(connections+prepared)), nil
}

func postgresDefaults(ctx context.Context, p *patient) (Finding, error) {
	s, err := p.settings(ctx, "default_transaction_isolation", "TimeZone")
	if err != nil {
		return Finding{}, err
	}
	isolation, zone := s["default_transaction_isolation"], s["timezone"]
	if isolation != "read committed" {
		return beware("begin transactions that take locks at READ COMMITTED",
			"transactions are %s: what is read after waiting for a transaction lock may be from before; leases retry more", isolation), nil
	}
	return fine("transactions are %s; the time zone is %s, and does not matter", isolation, zone), nil
}

// postgresVacuum finds dead versions of the rows of names. Every look at a name reads those of the name, so it gets slow.
func postgresVacuum(ctx context.Context, p *patient) (Finding, error) {
	if p.noTables || p.engine != "" {
		return Finding{}, nil
	}
	var versions struct{ Dead, Live int64 }
	err := p.DB.GetContext(ctx, &versions, p.Tables.Rewrite(p.Dialect, `
		SELECT coalesce(pg_catalog.pg_stat_get_dead_tuples(id), 0) AS dead, coalesce(pg_catalog.pg_stat_get_live_tuples(id), 0) AS live
		FROM (SELECT (SELECT tableoid FROM sqllock_lock LIMIT 1) AS id) t`))
	switch {
	case err != nil:
		return Finding{}, err
	case versions.Dead > 10_000+versions.Live:
		return beware("end what has been open for long: a transaction, a prepared one, a slot that nobody reads, a query on a standby",
			"has left %d dead versions of rows of names, and leases of these names are slow", versions.Dead), nil
	}
	return Finding{}, nil
}

func postgresCreate(ctx context.Context, p *patient) (Finding, error) {
	var may bool
	err := p.DB.GetContext(ctx, &may, "SELECT coalesce(pg_catalog.has_schema_privilege(coalesce(nullif($1, ''), current_schema()), 'CREATE'), false)",
		p.Tables.Schema)
	return p.create(may), err
}
