// Package version knows which servers are too old, and which only speak the protocol of PostgreSQL or MySQL.
package version

import (
	"fmt"
	"slices"
	"strings"
)

// OlderMySQL reports whether a server of MySQL or MariaDB with this version is older than the statements need. It also
// returns the oldest version that is not.
func OlderMySQL(version string) (oldest string, older bool) {
	oldest = "8.0.22"
	if strings.Contains(version, "MariaDB") {
		oldest = "10.6.0"
	}
	var is, want [3]int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &is[0], &is[1], &is[2]); err != nil {
		return oldest, false // unknown format: the server's own errors will tell
	}
	_, _ = fmt.Sscanf(oldest, "%d.%d.%d", &want[0], &want[1], &want[2]) // oldest has this format
	return oldest, slices.Compare(is[:], want[:]) < 0
}

// relatives are servers that speak the protocol of PostgreSQL or MySQL but are neither. The key is a part of their
// version string, or of version_comment.
var relatives = map[string]string{
	"CockroachDB": "CockroachDB", "-YB-": "YugabyteDB", "Redshift": "Redshift", "Greenplum": "Greenplum",
	"TiDB": "TiDB", "Vitess": "Vitess", "OceanBase": "OceanBase", "SingleStore": "SingleStore",
}

// Relative returns the name of such a server, or "".
func Relative(version string) string {
	for part, name := range relatives {
		if strings.Contains(version, part) {
			return name
		}
	}
	return ""
}
