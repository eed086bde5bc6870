package conn_test

import (
	"context"
	"database/sql/driver"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/leasetable/internal/conn"
	"github.com/sqllock/sqllock/schema"
)

// relative is a server of MySQL or of a relative, with a version and global variables.
type relative struct {
	*stage

	version   string
	variables [][]driver.Value
}

func (s *relative) Connect(ctx context.Context) (driver.Conn, error) {
	dc, err := s.stage.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &relativeConn{dc.(*staged), s}, nil
}

type relativeConn struct {
	*staged
	of *relative
}

func (c *relativeConn) QueryContext(_ context.Context, query string, _ []driver.NamedValue) (driver.Rows, error) {
	if query == "SELECT VERSION()" {
		return &cells{columns: 1, rows: [][]driver.Value{{[]byte(c.of.version)}}}, nil
	}
	if !strings.HasPrefix(query, "SHOW GLOBAL VARIABLES") {
		return nil, errFailed
	}
	return &cells{columns: 2, rows: c.of.variables}, nil
}

type cells struct {
	columns int
	rows    [][]driver.Value
}

func (r *cells) Columns() []string { return make([]string, r.columns) }

func (r *cells) Close() error { return nil }

func (r *cells) Next(to []driver.Value) error {
	if len(r.rows) == 0 {
		return io.EOF
	}
	copy(to, r.rows[0])
	r.rows = r.rows[1:]
	return nil
}

func TestWhichConnectionsLeadToAGaleraNode(t *testing.T) {
	t.Parallel()
	provider := []driver.Value{[]byte("wsrep_provider"), []byte("/usr/lib/galera4/libgalera_smm.so")}
	for what, test := range map[string]struct {
		version   string
		variables [][]driver.Value
		galera    bool
	}{
		"MySQL":                  {"9.7.0", nil, false},
		"MariaDB":                {"11.8.3-MariaDB", [][]driver.Value{{[]byte("wsrep_provider"), []byte("none")}, {"wsrep_on", "OFF"}}, false},
		"MariaDB in a cluster":   {"11.8.3-MariaDB", [][]driver.Value{{"wsrep_on", "ON"}, provider}, true},
		"MariaDB that has left":  {"11.8.3-MariaDB", [][]driver.Value{{"wsrep_on", "OFF"}, provider}, false},
		"Percona XtraDB Cluster": {"8.0.36-28.1", [][]driver.Value{provider, {"group_replication_group_name", nil}}, true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			server := &relative{stage: newStage(), version: test.version, variables: test.variables}
			p := conn.Open(server, schema.MySQL, conn.DefaultLimit)
			if err := p.Work.Connected(t.Context()); err != nil {
				t.Fatal(err)
			}
			waits := slices.Contains(server.ran, "SET SESSION wsrep_sync_wait = 7")
			if maria := strings.Contains(test.version, "MariaDB"); p.OnMariaDB() != maria || p.OnGalera() != test.galera || waits != test.galera {
				t.Errorf("on MariaDB: %t; on Galera: %t; statements wait: %t", p.OnMariaDB(), p.OnGalera(), waits)
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
