package leasetable_test

import (
	"context"
	"database/sql/driver"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sqllock/sqllock/sqltest"
)

// cluster is a Galera cluster of MariaDB nodes on this machine.
type cluster struct {
	nodes []*sqltest.Database // the same database, as each node has it
}

// startCluster starts one, with the lease tables in its database. It needs MariaDB's programs and
// Galera's library on this machine; without them the test is skipped, and with CI=true it fails without the library.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	library := galeraLibrary(t)
	fromPrograms(t, sqltest.EngineMariaDB, "a cluster of containers has no network of its own")
	const size = 3
	c := &cluster{}
	servers := make([]*sqltest.Server, size)
	contact := ""
	for i := range servers {
		group, others, files := freeAddress(t), freeAddress(t), freeAddress(t)
		_, port, _ := net.SplitHostPort(group)
		// A cut-off node is noticed within 2 s.
		provider := "base_port=" + port + ";gmcast.listen_addr=tcp://" + group + ";ist.recv_addr=" + others + ";gcache.size=16M;" +
			"evs.keepalive_period=PT0.2S;evs.inactive_check_period=PT0.2S;evs.join_retrans_period=PT0.2S;" +
			"evs.suspect_timeout=PT1S;evs.inactive_timeout=PT2S;evs.install_timeout=PT2S"
		servers[i] = sqltest.Start(t, sqltest.EngineMariaDB,
			"wsrep-on=ON", "wsrep-provider="+library, "wsrep-provider-options="+provider,
			"wsrep-cluster-address=gcomm://"+contact, "wsrep-node-address=127.0.0.1",
			"wsrep-sst-method=rsync", "wsrep-sst-receive-address="+files, "wsrep-slave-threads=4",
			"binlog-format=ROW", "innodb-autoinc-lock-mode=2", "innodb-buffer-pool-size=16M",
			"slave-run-triggers-for-rbr=YES", // see hold
		)
		contact = group
	}
	for _, server := range servers {
		c.nodes = append(c.nodes, server.Database(t))
	}
	// A node's password is its own; an account that is made now is everybody's.
	first := withTables(t, c.nodes[0])
	run(t, first, "CREATE USER everybody@'%' IDENTIFIED BY 'secret'")
	run(t, first, "GRANT ALL ON *.* TO everybody@'%'")
	var name string
	if err := first.GetContext(t.Context(), &name, "SELECT DATABASE()"); err != nil {
		t.Fatal(err)
	}
	for i, node := range c.nodes {
		dsn := fmt.Sprintf("everybody:secret@tcp(%s)/%s?parseTime=true", addressOf(node), name)
		same := *node
		same.DSN = dsn
		same.DB = open(t, node.DriverName(), dsn)
		c.nodes[i] = &same
		eventually(t, func() bool { return same.PingContext(t.Context()) == nil })
	}
	return c
}

func galeraLibrary(t *testing.T) string {
	t.Helper()
	for _, pattern := range []string{"/usr/lib*/galera*", "/usr/local/lib*/galera*"} {
		if found, _ := filepath.Glob(pattern + "/libgalera_smm.so"); len(found) > 0 {
			return found[0]
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("Galera is not installed")
	}
	t.Skip("Galera is not installed")
	return ""
}

// fromPrograms has servers of an engine started from programs, or skips the test and says why it cannot do
// with containers.
func fromPrograms(t *testing.T, engine sqltest.Engine, why string) {
	t.Helper()
	variable := "SQLTEST_" + strings.ToUpper(string(engine))
	if from := os.Getenv(variable); strings.HasPrefix(from, "docker") {
		t.Skipf("%s=%s: %s", variable, from, why)
	} else if from != "skip" && !strings.HasPrefix(from, "programs") {
		t.Setenv(variable, "programs")
		t.Setenv("SQLTEST_SKIP", "1")
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// isolate cuts a node off from the others, and waits until it knows; the function that it returns ends that.
func (c *cluster) isolate(t *testing.T, node int) (heal func()) {
	t.Helper()
	run(t, c.nodes[node], "SET GLOBAL wsrep_provider_options = 'gmcast.isolate=1'")
	eventually(t, func() bool { return c.state(t, node, "wsrep_cluster_status") == "non-Primary" })
	return func() {
		run(t, c.nodes[node], "SET GLOBAL wsrep_provider_options = 'gmcast.isolate=0'")
		eventually(t, func() bool { return c.state(t, node, "wsrep_local_state_comment") == "Synced" })
	}
}

func (c *cluster) state(t *testing.T, node int, variable string) string {
	t.Helper()
	var name, value string
	row := c.nodes[node].QueryRowContext(t.Context(), "SHOW GLOBAL STATUS LIKE '"+variable+"'")
	if err := row.Scan(&name, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// hold has a node apply nothing of what the others commit from now on, until the function is called that it
// returns: a trigger, which this node alone has, waits while it applies a row.
func (c *cluster) hold(t *testing.T, node int) (resume func()) {
	t.Helper()
	ctx := context.Background() // not t.Context(), for resume may be a Cleanup
	conn, err := c.nodes[node].Connx(ctx)
	if err != nil {
		t.Fatal(err)
	}
	do := func(statement string) {
		t.Helper()
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
	other := c.nodes[(node+1)%len(c.nodes)]
	run(t, other, "CREATE OR REPLACE TABLE gate (n INT AUTO_INCREMENT PRIMARY KEY)")
	do("SET SESSION wsrep_sync_wait = 7")
	do("DO (SELECT count(*) FROM gate)") // this node has it, too
	do("SET SESSION wsrep_on = OFF")
	do("CREATE TRIGGER gate BEFORE INSERT ON gate FOR EACH ROW SET @passed = GET_LOCK('gate', 60) + RELEASE_LOCK('gate')")
	do("SET GLOBAL wsrep_slave_threads = 1")
	eventually(t, func() bool { // the others end when they have applied something
		run(t, other, "INSERT INTO gate VALUES ()")
		return c.state(t, node, "wsrep_applier_thread_count") == "1"
	})
	do("DO GET_LOCK('gate', 10)")
	run(t, other, "INSERT INTO gate VALUES ()")
	eventually(t, func() bool {
		return count(t, c.nodes[node], "SELECT count(*) FROM information_schema.PROCESSLIST WHERE STATE = 'User lock'") == 1
	})
	return sync.OnceFunc(func() {
		do("DO RELEASE_LOCK('gate')")
		do("SET GLOBAL wsrep_slave_threads = 4")
		_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // it is no connection for others
	})
}
