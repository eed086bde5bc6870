package oddserver

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/sqltest"
)

// StartGalera starts a MariaDB node of a Galera cluster on this machine, and returns its address for the nodes that
// join it. The node joins the cluster of the node at contact; if contact is empty, it is the first node of a new
// cluster. This needs MariaDB's programs and Galera's library on this machine. Without them the test is skipped; with
// CI=true it fails if the library is missing.
func StartGalera(t *testing.T, contact string) (server *sqltest.Server, address string) {
	t.Helper()
	library := galeraLibrary(t)
	fromPrograms(t)
	address, others, files := FreeAddress(t), FreeAddress(t), FreeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	// The cluster notices a disconnected node within 2 s.
	provider := "base_port=" + port + ";gmcast.listen_addr=tcp://" + address + ";ist.recv_addr=" + others + ";gcache.size=16M;" +
		"evs.keepalive_period=PT0.2S;evs.inactive_check_period=PT0.2S;evs.join_retrans_period=PT0.2S;" +
		"evs.suspect_timeout=PT1S;evs.inactive_timeout=PT2S;evs.install_timeout=PT2S"
	server = sqltest.Start(t, sqltest.EngineMariaDB,
		sqltest.Setting("wsrep-on", "ON"), sqltest.Setting("wsrep-provider", library), sqltest.Setting("wsrep-provider-options", provider),
		sqltest.Setting("wsrep-cluster-address", "gcomm://"+contact), sqltest.Setting("wsrep-node-address", "127.0.0.1"),
		sqltest.Setting("wsrep-sst-method", "rsync"), sqltest.Setting("wsrep-sst-receive-address", files), sqltest.Setting("wsrep-slave-threads", "4"),
		sqltest.Setting("binlog-format", "ROW"), sqltest.Setting("innodb-autoinc-lock-mode", "2"), sqltest.Setting("innodb-buffer-pool-size", "16M"),
		sqltest.Setting("slave-run-triggers-for-rbr", "YES"), // a test delays a node with a trigger
	)
	return server, address
}

// fromPrograms makes sqltest start MariaDB from programs, or skips the test.
func fromPrograms(t *testing.T) {
	t.Helper()
	const variable = "SQLTEST_MARIADB"
	if from := os.Getenv(variable); strings.HasPrefix(from, "docker") {
		t.Skipf("%s=%s: a cluster of containers has no network of its own", variable, from)
	} else if from != "skip" && !strings.HasPrefix(from, "programs") {
		t.Setenv(variable, "programs")
		t.Setenv("SQLTEST_SKIP", "1")
	}
}

func galeraLibrary(t *testing.T) string {
	t.Helper()
	for _, pattern := range []string{"/usr/lib*/galera*", "/usr/local/lib*/galera*"} {
		if found, _ := filepath.Glob(pattern + "/libgalera_smm.so"); len(found) > 0 {
			return found[0]
		}
	}
	locktest.Impossible(t, "Galera is not installed")
	return ""
}
