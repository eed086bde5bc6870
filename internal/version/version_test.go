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
