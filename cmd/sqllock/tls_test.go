package main

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/sqltest"
)

// Managed databases have certificates of an authority that no machine trusts. For PostgreSQL a URL names its file, by
// sslrootcert.
func TestAURLOfMySQLNamesTheAuthorityOfTheServer(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	server := sqltest.Start(t, sqltest.EngineMariaDB, sqltest.TLS())
	config, err := gomysql.ParseDSN(server.Database(t).DSN)
	must(t, err)
	named := func(parameters string) env {
		u := url.URL{Scheme: "mysql", User: url.UserPassword(config.User, config.Passwd), Host: config.Addr, Path: config.DBName, RawQuery: parameters}
		return on(t, u.String())
	}
	trusted := "ssl-ca=" + url.QueryEscape(server.CA())
	for _, parameters := range []string{trusted, trusted + "&tls=true"} {
		call(t, named(parameters), 0, nil, "schema", "apply")
		for _, kind := range []string{"lease", "session"} {
			call(t, named(parameters), 0, nil, "run", "--kind", kind, "x", "--", "true")
		}
	}
	code, _, stderr := runHere(t, named("tls=true"), "run", "--wait", "0", "x", "--", "true")
	if code != 69 || !strings.Contains(stderr, "unknown authority") {
		t.Errorf("without the file: code %d, stderr %q", code, stderr)
	}
	config.TLSConfig, config.TLS, config.Params = "", nil, map[string]string{"ssl-ca": server.CA()}
	call(t, on(t, config.FormatDSN()), 0, nil, "run", "x", "--", "true")
}

func TestAnAuthorityOfMySQLThatIsNone(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	empty := filepath.Join(t.TempDir(), "ca.pem")
	must(t, os.WriteFile(empty, nil, 0o600))
	for parameters, says := range map[string]string{
		"ssl-ca=/no/ca.pem":                    "cannot be read: no such file",
		"ssl-ca=" + empty:                      "has no certificate",
		"ssl-ca=":                              "cannot be read",
		"ssl-ca=" + empty + "&tls=skip-verify": "leave that out",
		"ssl-ca=" + empty + "&allowFallbackToPlaintext=true": "leave that out",
	} {
		code, _, stderr := runHere(t, on(t, "mysql://u:s3cr3t@h/d?"+parameters), "schema", "check")
		if code != 64 || !strings.Contains(stderr, says) || strings.Contains(stderr, "s3cr3t") {
			t.Errorf("%s: code %d, stderr %q, want 64 and %q", parameters, code, stderr, says)
		}
	}
}
