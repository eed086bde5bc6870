package sqltest

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// A kind of source is one of the ways to get a server.
type kind string

const (
	fromDSN      kind = "dsn"
	fromDocker   kind = "docker"
	fromPrograms kind = "programs"
)

// A source is a place to get a server from.
type source struct {
	kind  kind
	value string // DSN; image; folder of the programs, or empty
}

func (s source) String() string { return string(s.kind) + ":" + s.value }

var (
	// errSkip says that the environment wants tests of this engine skipped.
	errSkip = errors.New("tests of this engine are switched off")
	// errNoDSN says that a server of a test's own cannot be one named by a DSN.
	errNoDSN = errors.New("a test that stops its server cannot use one that belongs to somebody else")
)

// sourcesOf reads from the environment where the server of p may come from, in
// the order to try.
func sourcesOf(p product) ([]source, error) {
	value := os.Getenv(p.variable())
	way, rest, _ := strings.Cut(value, ":")
	switch {
	case value == "":
		return []source{{fromDocker, p.image()}, {fromPrograms, ""}}, nil
	case value == "skip":
		return nil, errSkip
	case way == "docker":
		return []source{{fromDocker, choose(rest != "", rest, p.image())}}, nil
	case way == "programs":
		return []source{{fromPrograms, rest}}, nil
	}
	dsn, _, err := p.parse(value)
	if err != nil {
		// Not shown: somebody's password may be in it.
		return nil, fmt.Errorf("the value of %s is neither skip, docker, docker:IMAGE, programs, programs:FOLDER nor a DSN such as %s",
			p.variable(), p.example())
	}
	return []source{{fromDSN, dsn}}, nil
}

// ownSourcesOf is sourcesOf for a server that a test may stop and kill.
func ownSourcesOf(p product) ([]source, error) {
	sources, err := sourcesOf(p)
	if err == nil && sources[0].kind == fromDSN {
		return []source{{fromDocker, p.image()}, {fromPrograms, ""}}, errNoDSN
	}
	return sources, err
}

// attempt is a source that was tried in vain.
type attempt struct {
	source source
	err    error
}

// noServerError says what was tried to get a server, and what else there is.
type noServerError struct {
	product product
	tried   []attempt
}

func (e *noServerError) Error() string {
	p := e.product
	why := func(k kind) string {
		for _, a := range e.tried {
			if a.source.kind == k {
				where := choose(a.source.value == "", "", a.source.value+": ")
				return "\n     tried: " + where + strings.ReplaceAll(a.err.Error(), "\n", "\n     ")
			}
		}
		return "\n     not tried"
	}
	return fmt.Sprintf(`no %[1]s server for this test. There are three ways to get one:
  1. a server that runs already: %[2]s=%[3]s%[4]s
  2. Docker: %[2]s=docker, or docker:IMAGE for another image than %[5]s%[6]s
  3. programs on this machine: %[2]s=programs, or programs:FOLDER%[7]s
%[2]s=skip leaves out the tests that need %[1]s, SQLTEST_SKIP=1 all tests that find no server`,
		p.title(), p.variable(), p.example(), why(fromDSN), p.image(), why(fromDocker), why(fromPrograms))
}

func (e *noServerError) Unwrap() []error {
	var errs []error
	for _, a := range e.tried {
		errs = append(errs, a.err)
	}
	return errs
}

// wrongProductError says that a server is not what it was taken for.
type wrongProductError struct{ want, found string }

func (e wrongProductError) Error() string {
	return fmt.Sprintf("wanted %s, but this is %s", e.want, e.found)
}

// giveUp ends a test that has no server: with a skip if that was asked for.
func giveUp(tb TB, p product, err error) {
	tb.Helper()
	switch {
	case errors.Is(err, errSkip):
		tb.Skipf("sqltest: %s=skip: not tested on %s", p.variable(), p.title())
	case isSet("SQLTEST_SKIP"):
		tb.Skipf("sqltest: SQLTEST_SKIP: not tested on %s: %v", p.title(), err)
	default:
		tb.Fatalf("sqltest: %v", err)
	}
}

// keep tells whether the database of tb is to stay for somebody to look at.
func keep(tb TB) bool { return tb.Failed() && isSet("SQLTEST_KEEP") }

func isSet(variable string) bool {
	value := os.Getenv(variable)
	return value != "" && value != "0" && value != "false"
}

const (
	// quickly bounds what answers at once unless something is broken.
	quickly = 10 * time.Second
	// patiently bounds a server's start, on a machine that is busy.
	patiently = 3 * time.Minute
)
