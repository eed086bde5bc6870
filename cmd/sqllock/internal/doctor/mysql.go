package doctor

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/cluster"
	"github.com/sqllock/sqllock/internal/version"
	"github.com/sqllock/sqllock/mysql"
)

var mysqlChecks = []check{
	{"server", every, mysqlServer},
	{"pooler", session, mysqlProxy},
	{"encryption", none, encryption},
	{"role", lease | session, mysqlRole},
	{"cluster", lease, mysqlCluster},
	{"replication", lease, mysqlReplication},
	{"idle", none, mysqlIdle},
	{"connections", every, mysqlConnections},
	{"defaults", none, mysqlDefaults},
	{"clock", none, clock},
	{"tables", lease, tables},
	{"write", lease, write},
	{"create", none, mysqlCreate},
	{"holders", none, mysqlHolders},
}

func mysqlServer(ctx context.Context, p *patient) (Finding, error) {
	var server struct{ Version, Comment string }
	err := p.DB.GetContext(ctx, &server, "SELECT VERSION() AS version, @@version_comment AS comment")
	if err != nil {
		return Finding{}, err
	}
	name := server.Version
	if !strings.Contains(name, "MariaDB") {
		name = "MySQL " + name
	}
	if p.engine = version.Relative(server.Version + " " + server.Comment); p.engine != "" {
		return notTested(p.engine, server.Version), nil
	}
	if oldest, older := version.OlderMySQL(server.Version); older {
		return beware("use version "+oldest+" or later", "%s is older than what sqllock is made for", name), nil
	}
	return fine("%s, %s", name, strings.Trim(server.Comment, "()")), nil // Debian puts it in brackets
}

// mysqlProxy queries the session number in two ways, because some proxies answer the first form themselves.
func mysqlProxy(ctx context.Context, p *patient) (Finding, error) {
	conn, err := p.DB.Connx(ctx)
	if err != nil {
		return Finding{}, err
	}
	defer func() { _ = conn.Close() }() // returns it to the pool
	var short, long int64
	if err := conn.GetContext(ctx, &short, "SELECT CONNECTION_ID()"); err != nil {
		return Finding{}, err
	}
	if err := conn.GetContext(ctx, &long, "SELECT CONNECTION_ID() FROM DUAL WHERE CONNECTION_ID() > 0"); err != nil {
		return Finding{}, err
	}
	if short != long {
		return beware("connect to the server itself for session locks, or use leases",
			"a proxy is in between: the session calls itself %d and %d", short, long), nil
	}
	return fine("none was seen; one that hides cannot be told from the server"), nil
}

func mysqlRole(ctx context.Context, p *patient) (Finding, error) {
	s, err := p.settings(ctx, "read_only", "super_read_only", "innodb_read_only")
	if err != nil {
		return Finding{}, err
	}
	if isOn(s["read_only"]) || isOn(s["super_read_only"]) {
		return bad(toThePrimary+", or SET GLOBAL read_only = OFF", "read-only, and so probably a replica"), nil
	}
	if isOn(s["innodb_read_only"]) {
		return bad(toThePrimary, "read-only by innodb_read_only, as a reader of Aurora"), nil
	}
	rows, err := p.DB.QueryContext(ctx, "SHOW REPLICA STATUS")
	if err != nil {
		return fine("it can be written to; whether it is a replica this user may not ask (%s)", oneLine(err)), nil
	}
	defer func() { _ = rows.Close() }() // Err has reported it
	if rows.Next() {
		return beware(toThePrimary, "a replica, although it can be written to: its locks are not known to the primary"), nil
	}
	return fine("a primary that can be written to"), rows.Err()
}

// isOn reports whether a variable is on. MariaDB 12 has other values than ON for read_only.
func isOn(value string) bool {
	return value != "" && value != "0" && !strings.EqualFold(value, "OFF")
}

func mysqlCluster(ctx context.Context, p *patient) (Finding, error) {
	s, err := p.pairs(ctx, cluster.Query)
	if err != nil {
		return Finding{}, err
	}
	const leases = "use leases: GET_LOCK is known to one member only"
	switch cluster.Of(s) {
	case cluster.Galera:
		status, err := p.pairs(ctx, "SHOW GLOBAL STATUS LIKE 'wsrep_cluster_%'")
		if err != nil {
			return Finding{}, err
		}
		if is := status["wsrep_cluster_status"]; is != "Primary" {
			return bad("connect to another node, or mend the cluster", "a Galera node without a majority (wsrep_cluster_status is %s)", is), nil
		}
		return beware(leases+"; keep the clocks of the nodes together", "a Galera node, in a cluster of %s", status["wsrep_cluster_size"]), nil
	case cluster.GroupReplication:
		return beware(leases+"; they are not tested here, so have one member take the writes", "a member of a replication group"), nil
	}
	return fine("no Galera, no Group Replication"), nil
}

func mysqlReplication(ctx context.Context, p *patient) (Finding, error) {
	// MySQL's information_schema.PROCESSLIST fails while the statement of any session has a parameter that is not
	// UTF-8. That of performance_schema is empty where performance_schema is off.
	var sessions []struct {
		Command string `db:"Command"`
	}
	if err := p.DB.Unsafe().SelectContext(ctx, &sessions, "SHOW PROCESSLIST"); err != nil {
		return Finding{}, err
	}
	replicas := 0
	for _, s := range sessions {
		if strings.HasPrefix(s.Command, "Binlog Dump") {
			replicas++
		}
	}
	s, err := p.pairs(ctx, "SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_%_status'")
	if err != nil {
		return Finding{}, err
	}
	switch semi := isOn(s["rpl_semi_sync_source_status"]) || isOn(s["rpl_semi_sync_master_status"]); {
	case semi:
		return fine("semi-synchronous, replicas: %d. A failover forgets nothing, unless none confirmed in time", replicas), nil
	case replicas == 0:
		return fine("no replica is connected, as far as this user sees"), nil
	}
	return beware("turn on semi-synchronous replication, if no lease may be forgotten",
		"asynchronous, replicas: %d. A failover forgets the leases that were taken just before", replicas), nil
}

func mysqlIdle(ctx context.Context, p *patient) (Finding, error) {
	s, err := p.settings(ctx, "wait_timeout")
	return fine("wait_timeout is %s s, and session locks set their own", s["wait_timeout"]), err
}

func mysqlConnections(ctx context.Context, p *patient) (Finding, error) {
	s, err := p.settings(ctx, "max_connections")
	if err != nil {
		return Finding{}, err
	}
	status, err := p.pairs(ctx, "SHOW GLOBAL STATUS LIKE 'Threads_connected'")
	if err != nil {
		return Finding{}, err
	}
	limit, _ := strconv.Atoi(s["max_connections"])
	used, _ := strconv.Atoi(status["threads_connected"])
	return use("connections", "max_connections", used, limit), nil
}

func mysqlDefaults(ctx context.Context, p *patient) (Finding, error) {
	s, err := p.settings(ctx, "transaction_isolation", "tx_isolation", "time_zone", "autocommit")
	return fine("transactions are %s, autocommit is %s, the time zone is %s: locks set what they need",
		cmp.Or(s["transaction_isolation"], s["tx_isolation"]), s["autocommit"], s["time_zone"]), err
}

// createSQL sees privileges granted to the user directly, and not those granted through a role.
const createSQL = `
SELECT EXISTS (SELECT 1 FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE = 'CREATE' AND GRANTEE = me)
    OR EXISTS (SELECT 1 FROM information_schema.SCHEMA_PRIVILEGES
               WHERE PRIVILEGE_TYPE = 'CREATE' AND GRANTEE = me AND DATABASE() LIKE TABLE_SCHEMA)
FROM (SELECT CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), '''') AS me) AS who`

func mysqlCreate(ctx context.Context, p *patient) (Finding, error) {
	var may bool
	err := p.DB.GetContext(ctx, &may, createSQL)
	return p.create(may), err
}

// mysqlHolders checks whether the holders of GET_LOCK can be listed.
func mysqlHolders(ctx context.Context, p *patient) (Finding, error) {
	l, err := mysql.FromDB(p.DB.DB, mysql.WithLogger(nil))
	if err != nil {
		return Finding{}, err
	}
	defer func() { _ = l.Close() }() // it holds nothing
	_, err = l.List(ctx)
	switch {
	case errors.Is(err, sqllock.ErrRefused): // there are no session locks here
		return Finding{}, nil
	case errors.Is(err, sqllock.ErrUnsupported):
		return beware("start it with performance_schema=ON, and enable the instrument wait/lock/metadata/sql/mdl",
			"the server does not show who holds which session lock"), nil
	case err != nil && ctx.Err() == nil:
		return beware("let this user read performance_schema", "sqllock ls cannot show session locks: %s", oneLine(err)), nil
	}
	return fine("sqllock ls can show who holds which session lock"), err
}
