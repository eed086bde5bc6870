package locktest

import (
	"flag"
	"os"
	"runtime"
	"strconv"
)

// MostTestsWait has so many tests run beside each other for each processor, unless -parallel was given: most of
// them wait for a server or for a session to expire. Where others keep the processors busy, as SQLLOCK_TEST_BUSY says (see
// scripts/with-servers), there are fewer: each of them still needs its answers within the time limits of a statement. It is for TestMain.
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
