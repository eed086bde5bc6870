// Package version knows which servers are too old.
package version

import (
	"fmt"
	"slices"
	"strings"
)

// OlderMySQL reports whether MySQL or MariaDB, which calls itself version, is older than the statements need, and the oldest
// that is not.
func OlderMySQL(version string) (oldest string, older bool) {
	oldest = "8.0.22"
	if strings.Contains(version, "MariaDB") {
		oldest = "10.6.0"
	}
	var is, want [3]int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &is[0], &is[1], &is[2]); err != nil {
		return oldest, false // it will say itself what it does not know
	}
	_, _ = fmt.Sscanf(oldest, "%d.%d.%d", &want[0], &want[1], &want[2]) // it is of that form
	return oldest, slices.Compare(is[:], want[:]) < 0
}
