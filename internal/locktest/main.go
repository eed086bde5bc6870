package locktest

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"
)

// MostTestsWait sets how many tests run in parallel for each processor, unless -parallel is given: most tests wait for
// a server or for a session to expire. If other programs keep the processors busy, as SQLLOCK_TEST_BUSY says (see
// scripts/with-servers), fewer run: each test still needs its responses within the time limits of a statement. Call it
// in TestMain.
func MostTestsWait(each int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return
	}
	n := each * runtime.GOMAXPROCS(0)
	if busy, _ := strconv.Atoi(os.Getenv("SQLLOCK_TEST_BUSY")); busy > 0 {
		room := 4 * runtime.GOMAXPROCS(0)
		n = max(2, n*room/(room+busy))
	}
	_ = flag.Set("test.parallel", strconv.Itoa(n))
}

// RunTests runs all tests and returns the exit code. If they succeed, no goroutine may be left, as leaks says, which is
// goleak.Find. A driver may close a connection in the background, and goleak waits for less than half a second: so
// RunTests asks for a minute.
func RunTests(m *testing.M, leaks func() error) (code int) {
	if code = m.Run(); code != 0 {
		return code
	}
	err := leaks()
	for end := time.Now().Add(time.Minute); err != nil && time.Now().Before(end); {
		err = leaks()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "still running after all tests:", err)
		return 1
	}
	return 0
}
