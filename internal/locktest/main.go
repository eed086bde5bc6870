package locktest

import (
	"flag"
	"runtime"
	"strconv"
)

// MostTestsWait has more tests run beside each other than there are processors, unless -parallel was given: most of
// them wait for a server or for a session to expire. It is for TestMain.
func MostTestsWait() {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(3*runtime.GOMAXPROCS(0)))
	}
}
