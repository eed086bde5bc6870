package sqltest_test

import (
	"strings"
	"testing"

	"github.com/sqllock/sqllock/sqltest"
)

// A client computes as many hashes for each login as the server's form of the password says.
func TestThePasswordOfPostgreSQLIsOfOneIteration(t *testing.T) {
	t.Parallel()
	var kept string
	err := sqltest.Start(t, sqltest.EnginePostgres).Database(t).GetContext(t.Context(), &kept, "SELECT rolpassword FROM pg_authid WHERE rolname = 'postgres'")
	if err != nil || !strings.HasPrefix(kept, "SCRAM-SHA-256$1:") {
		t.Errorf("the server keeps %q, %v", kept, err)
	}
}
