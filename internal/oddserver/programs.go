package oddserver

import (
	"os"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/sqltest"
)

// FromPrograms has servers of an engine started from programs, or skips the test and says why it cannot do
// with containers.
func FromPrograms(t *testing.T, engine sqltest.Engine, why string) {
	t.Helper()
	variable := "SQLTEST_" + strings.ToUpper(string(engine))
	if from := os.Getenv(variable); strings.HasPrefix(from, "docker") {
		t.Skipf("%s=%s: %s", variable, from, why)
	} else if from != "skip" && !strings.HasPrefix(from, "programs") {
		t.Setenv(variable, "programs")
		t.Setenv("SQLTEST_SKIP", "1")
	}
}
