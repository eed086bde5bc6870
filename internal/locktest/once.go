package locktest

import "testing"

// OncePerEngine skips a test in short mode, because its result does not depend on the version of a server. `make test`
// runs the second and later versions in short mode.
func OncePerEngine(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("shown on another version of the server")
	}
}
