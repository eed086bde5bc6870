package leasetable_test

import (
	"context"
	"database/sql/driver"
	"fmt"
	"sync"
	"testing"

	"github.com/sqllock/sqllock/internal/oddserver"
	"github.com/sqllock/sqllock/sqltest"
)

// cluster is a Galera cluster of MariaDB nodes on this machine.
type cluster struct {
	nodes []*sqltest.Database // the same database on each node
}

// startCluster starts a cluster, with the lease tables in its database.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	const size = 3
	c := &cluster{}
	servers := make([]*sqltest.Server, size)
	contact := ""
	for i := range servers {
		servers[i], contact = oddserver.StartGalera(t, contact)
	}
	for _, server := range servers {
		c.nodes = append(c.nodes, server.Database(t))
	}
	// A node's password is its own; an account created now exists on all nodes.
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

// isolate cuts a node off from the others, and waits until it knows. The returned function undoes that.
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

// hold makes a node apply nothing of what the others commit from now on, until the returned function is called: a
// trigger that exists on this node only waits while it applies a row.
func (c *cluster) hold(t *testing.T, node int) (resume func()) {
	t.Helper()
	ctx := context.Background() // not t.Context(), because resume may be a Cleanup
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
	do("SELECT count(*) FROM gate") // waits until this node has the table, too; a DO would not
	do("SET SESSION wsrep_on = OFF")
	do("CREATE TRIGGER gate BEFORE INSERT ON gate FOR EACH ROW SET @passed = GET_LOCK('gate', 60) + RELEASE_LOCK('gate')")
	do("SET GLOBAL wsrep_slave_threads = 1")
	eventually(t, func() bool { // the other appliers end after they have applied something
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
		_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // its session is not fit for reuse
	})
}
