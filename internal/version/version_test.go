package version_test

import (
	"testing"

	"github.com/sqllock/sqllock/internal/version"
)

func TestOlderMySQL(t *testing.T) {
	t.Parallel()
	for is, want := range map[string]bool{
		"8.0.21":                             true,
		"8.0.22":                             false,
		"8.4.0-commercial":                   false,
		"5.7.44-log":                         true,
		"10.5.29-MariaDB":                    true,
		"10.6.0-MariaDB":                     false,
		"10.11.19-MariaDB-0+deb12u1":         false,
		"something else, which is not known": false,
	} {
		if oldest, older := version.OlderMySQL(is); older != want {
			t.Errorf("%s is older than %s: %t", is, oldest, older)
		}
	}
}

func TestServersThatOnlySpeakLikeOthers(t *testing.T) {
	t.Parallel()
	for is, want := range map[string]string{
		"CockroachDB CCL v24.1.0 (x86_64-pc-linux-gnu, built 2024/05/15)":   "CockroachDB",
		"PostgreSQL 11.2-YB-2.20.1.0-b0 on x86_64-pc-linux-gnu":             "YugabyteDB",
		"8.0.11-TiDB-v7.5.0 TiDB Server (Apache License 2.0)":               "TiDB",
		"8.0.30-Vitess Version: 19.0.0":                                     "Vitess",
		"PostgreSQL 17.6 (Debian 17.6-1) on x86_64-pc-linux-gnu, by gcc 14": "",
		"10.11.14-MariaDB-0+deb12u2 Debian 12":                              "",
		"9.7.0 MySQL Community Server - GPL":                                "",
	} {
		if got := version.Relative(is); got != want {
			t.Errorf("%s is %q, want %q", is, got, want)
		}
	}
}
