package locktest

import (
	"flag"
	"os"
	"runtime"
	"strconv"
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
