package cluster_test

import (
	"testing"

	"github.com/sqllock/sqllock/internal/cluster"
)

func TestWhichServersAreInACluster(t *testing.T) {
	t.Parallel()
	const library = "/usr/lib/galera4/libgalera_smm.so"
	for _, test := range []struct {
		what      string
		variables map[string]string
		want      cluster.Kind
	}{
		{"MySQL", nil, cluster.None},
		{"MariaDB", map[string]string{"wsrep_provider": "none", "wsrep_on": "OFF"}, cluster.None},
		{"MariaDB that has no provider", map[string]string{"wsrep_provider": "", "wsrep_on": "ON"}, cluster.None},
		{"MariaDB with Galera", map[string]string{"wsrep_provider": library, "wsrep_on": "ON"}, cluster.Galera},
		{"MariaDB with Galera that is off", map[string]string{"wsrep_provider": library, "wsrep_on": "OFF"}, cluster.None},
		{"Percona XtraDB Cluster", map[string]string{"wsrep_provider": library}, cluster.Galera},
		{"Percona XtraDB Cluster, standing alone", map[string]string{"wsrep_provider": "none"}, cluster.None},
		{"MySQL that has the plugin alone", map[string]string{"group_replication_group_name": ""}, cluster.None},
		{"a replication group", map[string]string{"group_replication_group_name": "8a94f357-aab4-11df-86ab-c80aa9429562"}, cluster.GroupReplication},
	} {
		if got := cluster.Of(test.variables); got != test.want {
			t.Errorf("%s: %q, want %q", test.what, got, test.want)
		}
	}
}
