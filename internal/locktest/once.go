package locktest

import "testing"

// OncePerEngine skips a test in short mode: what it shows does not depend on the version of a server. `make test` runs the
// versions that come second in short mode.
func OncePerEngine(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("shown on another version of the server")
	}
}
