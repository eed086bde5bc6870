package sqltest_test

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/sqltest"
)

func TestAServerWithTLSIsChecked(t *testing.T) {
	t.Parallel()
	for _, engine := range serverEngines {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			server := sqltest.Start(t, engine, sqltest.TLS())
			db := server.Database(t)
			encrypted := func(db *sqlx.DB) bool {
				t.Helper()
				var is bool
				query := "SELECT variable_value <> '' FROM " + map[sqltest.Engine]string{
					sqltest.EngineMySQL: "performance_schema.session_status", sqltest.EngineMariaDB: "information_schema.session_status",
				}[engine] + " WHERE variable_name = 'Ssl_cipher'"
				if engine == sqltest.EnginePostgres {
					query = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
				}
				if err := db.GetContext(t.Context(), &is, query); err != nil {
					t.Fatal(err)
				}
				return is
			}
			if !encrypted(db.DB) || !encrypted(openFar(t, db, db.Network(t))) {
				t.Error("a connection is not encrypted")
			}
			if engine == sqltest.EnginePostgres {
				if !strings.Contains(db.DSN, "sslmode=verify-full") {
					t.Errorf("it is not checked: %s", db.DSN)
				}
			} else {
				far, err := sqlx.Open("mysql", withTLS(t, db.DSN, server.CA()))
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = far.Close() }()
				if !encrypted(far) {
					t.Error("with the authority's file a connection is not encrypted")
				}
			}
			if pem, err := os.ReadFile(server.CA()); err != nil || !strings.Contains(string(pem), "BEGIN CERTIFICATE") {
				t.Errorf("the authority's file: %q, %v", pem, err)
			}
			db.SetMaxIdleConns(0)
			server.Stop()
			server.Start()
			if !encrypted(db.DB) {
				t.Error("after a restart a connection is not encrypted")
			}
		})
	}
}

// withTLS returns a DSN of MySQL whose driver trusts the authority in a file.
func withTLS(t *testing.T, dsn, file string) string {
	t.Helper()
	pem, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.TLSConfig = strings.NewReplacer("/", "-").Replace(t.Name())
	if err := mysql.RegisterTLSConfig(config.TLSConfig, &tls.Config{RootCAs: roots}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mysql.DeregisterTLSConfig(config.TLSConfig) })
	return config.FormatDSN()
}

func TestTLSIsForAServerOfItsOwn(t *testing.T) {
	t.Parallel()
	tb := newFakeTB(t.Name())
	tb.run(func() { sqltest.Postgres(tb, sqltest.TLS()) })
	if !strings.Contains(tb.fatal, "pass TLS to Start") {
		t.Errorf("failed with %q", tb.fatal)
	}
	if server := sqltest.Start(t, startable(t)); server.CA() != "" {
		t.Errorf("a server without TLS has the authority %s", server.CA())
	}
}
