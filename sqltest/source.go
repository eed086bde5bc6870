package sqltest

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// kind is one of the ways to get a server.
type kind string

const (
	fromDSN      kind = "dsn"
	fromDocker   kind = "docker"
	fromPrograms kind = "programs"
)

// source is a place to get a server from.
type source struct {
	kind    kind
	value   string // DSN; image; folder of the programs, or empty
	version string // what the server must have; empty for any
}

// String returns what servers have in common that tests may share. The version of an image is in its name.
func (s source) String() string {
	text := string(s.kind) + ":" + s.value
	if s.kind == fromPrograms && s.version != "" {
		text += " " + s.version
	}
	return text
}

var (
	// errSkip means that the environment disables the tests of this engine.
	errSkip = errors.New("tests of this engine are switched off")
	// errNoDSN means that a server of one test cannot be one named by a DSN.
	errNoDSN = errors.New("a test that stops its server cannot use one that belongs to somebody else")
)

// sourcesOf reads from the environment where the server of p may come from, in the order to try.
func sourcesOf(p product, version string) ([]source, error) {
	sources, err := anySourcesOf(p)
	for i := range sources {
		s := &sources[i]
		if s.version = version; version != "" && s.kind == fromDocker {
			s.value = ofVersion(s.value, version)
		}
	}
	return sources, err
}

func anySourcesOf(p product) ([]source, error) {
	value := os.Getenv(p.variable())
	way, rest, _ := strings.Cut(value, ":")
	switch {
	case value == "":
		return []source{{kind: fromDocker, value: p.image()}, {kind: fromPrograms}}, nil
	case value == "skip":
		return nil, errSkip
	case way == "docker":
		return []source{{kind: fromDocker, value: choose(rest != "", rest, p.image())}}, nil
	case way == "programs":
		return []source{{kind: fromPrograms, value: rest}}, nil
	}
	dsn, _, err := p.parse(value)
	if err != nil {
		// The value is not shown: it may contain a password.
		return nil, fmt.Errorf("the value of %s is neither skip, docker, docker:IMAGE, programs, programs:FOLDER nor a DSN such as %s",
			p.variable(), p.example())
	}
	return []source{{kind: fromDSN, value: dsn}}, nil
}

// ownSourcesOf returns the sources for a server that a test may stop and kill.
func ownSourcesOf(p product, version string) ([]source, error) {
	sources, err := sourcesOf(p, version)
	if err == nil && sources[0].kind == fromDSN {
		return []source{
			{fromDocker, choose(version == "", p.image(), ofVersion(p.image(), version)), version},
			{fromPrograms, "", version},
		}, errNoDSN
	}
	return sources, err
}

// attempt is a source that failed.
type attempt struct {
	source source
	err    error
}

// noServerError lists what was tried to get a server, and the alternatives.
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

// wrongProductError means that a server is another product than expected.
type wrongProductError struct{ want, found string }

func (e wrongProductError) Error() string {
	return fmt.Sprintf("wanted %s, but this is %s", e.want, e.found)
}

// giveUp ends a test that has no server, with a skip if the environment asks for it.
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

// keep reports whether the database of tb must be kept for inspection.
func keep(tb TB) bool { return tb.Failed() && isSet("SQLTEST_KEEP") }

func isSet(variable string) bool {
	value := os.Getenv(variable)
	return value != "" && value != "0" && value != "false"
}

const (
	// quickly bounds operations that are fast unless something is broken. They are repeated, or not needed.
	quickly = 10 * time.Second
	// unhurriedly bounds such an operation that is done once, and without which there is no test.
	unhurriedly = 45 * time.Second
	// patiently bounds the start of a server on a busy machine.
	patiently = 3 * time.Minute
)
