package examples_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Code and tests cite the invariants of docs/design.md. Each must be cited by what keeps it and by a test.
func TestTheInvariantsAreCited(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	type cited struct{ kept, shown bool }
	invariants := make(map[string]*cited)
	var numbers []string // in the order of the document
	for _, m := range regexp.MustCompile(`(?m)^- \*\*(I\d+)\. `).FindAllStringSubmatch(string(document), -1) {
		if invariants[m[1]] != nil {
			t.Errorf("docs/design.md has two invariants %s", m[1])
		}
		invariants[m[1]] = new(cited)
		numbers = append(numbers, m[1])
	}
	if len(numbers) < 40 {
		t.Errorf("docs/design.md has %d invariants only", len(numbers))
	}
	citation := regexp.MustCompile(`\bI[1-9]\d*\b`)
	for _, number := range citation.FindAllString(string(document), -1) {
		if invariants[number] == nil {
			t.Errorf("docs/design.md cites %s, which it does not have", number)
		}
	}
	eachSource(t, func(path, text string) {
		test := strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/internal/locktest/")
		for line := range strings.Lines(text) {
			for _, number := range citation.FindAllString(comment(path, line), -1) {
				of := invariants[number]
				switch {
				case of == nil:
					t.Errorf("%s cites %s, which docs/design.md does not have", path, number)
				case test:
					of.shown = true
				default:
					of.kept = true
				}
			}
		}
	})
	for _, number := range numbers {
		if !invariants[number].kept {
			t.Errorf("no code cites %s", number)
		}
		if !invariants[number].shown {
			t.Errorf("no test cites %s", number)
		}
	}
}

// comment returns the comment at the end of a line of a Go or SQL file.
func comment(path, line string) string {
	mark := "//"
	if strings.HasSuffix(path, ".sql") {
		mark = "--"
	}
	_, after, _ := strings.Cut(line, mark)
	return after
}
