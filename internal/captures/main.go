// Command captures writes output of sqllock ls, watch and doctor into README.md and docs/operations.md. It is real
// output about real processes that hold locks in a PostgreSQL that package sqltest starts. unshare(1) gives the
// processes different host names, and tmux is the terminal. make captures runs it, on Linux.
//
// A captured output stands between the comments <!-- capture: ls --> and <!-- end of capture -->.
package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
)

var documents = []string{"README.md", "docs/operations.md"}

func main() {
	s := newStage()
	defer s.end()
	captures := map[string]func(*stage) string{"ls": ls, "watch": watch, "doctor": doctor}
	place := regexp.MustCompile(`(?s)(<!-- capture: (\w+) -->\n).*?(<!-- end of capture -->)`)
	for _, document := range documents {
		text, err := os.ReadFile(document) //nolint:gosec // a constant
		s.must(err)
		text = place.ReplaceAllFunc(text, func(old []byte) []byte {
			parts := place.FindSubmatch(old)
			name := string(parts[2])
			if captures[name] == nil {
				s.Fatalf("%s has a place for what nothing captures: %s", document, name)
			}
			shown := captures[name](s)
			_, _ = fmt.Fprintf(os.Stderr, "%s:\n%s", name, shown)
			return slices.Concat(parts[1], fmt.Appendf(nil, "```console\n$ sqllock %s\n%s```\n", name, shown), parts[3])
		})
		s.must(os.WriteFile(document, text, 0o600)) //nolint:gosec // a constant, and the file has its permissions already
	}
}

// scene makes processes acquire locks: one with a waiter, a session lock, two permits of three, and one whose holder is
// dead. It returns the first and the last holder.
func scene(s *stage) (report, dead *process) {
	report = s.hold("web-1", "--owner", "report.sh", "nightly-report")
	s.hold("web-2", "--owner", "migrate 0042", "--kind", "session", "migrations")
	s.hold("worker-1", "--owner", "render", "--limit", "3", "thumbnails")
	s.hold("worker-2", "--owner", "render", "--limit", "3", "thumbnails")
	dead = s.hold("web-3", "--owner", "import.sh", "--ttl", "6s", "import/eu")
	s.start("web-2", "--owner", "report.sh", "nightly-report")
	s.until("1+", "ls")
	return report, dead
}

func ls(s *stage) string {
	defer s.clear()
	_, dead := scene(s)
	dead.kill()
	s.until("expired", "ls")
	return s.sqllock("ls")
}

// watch also shows a forced release, a handoff to a waiter which then has a waiter itself, and a lease whose renewal is
// overdue.
func watch(s *stage) string {
	defer s.clear()
	report, dead := scene(s)
	s.hold("web-4", "--owner", "deploy 214", "deploy")
	shows := s.terminal("watch")
	shows("q quits")
	s.sqllock("release", "--force", "deploy")
	shows("taken away")
	report.letGo()
	shows("taken       nightly-report")
	s.start("web-1", "--owner", "report.sh", "nightly-report")
	shows("1 waited for")
	dead.kill()
	return shows("expiring    import/eu")
}

func doctor(s *stage) string { return s.sqllock("doctor") }
