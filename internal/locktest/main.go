package locktest

import (
	"flag"
	"runtime"
	"strconv"
)

// MostTestsWait has so many tests run beside each other for each processor, unless -parallel was given: most of
// them wait for a server or for a session to expire. It is for TestMain.
func MostTestsWait(each int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(each*runtime.GOMAXPROCS(0)))
	}
}
