package examples_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The map of docs/architecture.md must name files and functions that exist.
func TestTheArchitectureNamesWhatIsThere(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]bool) // by each end of their paths that begins with a name
	var code strings.Builder
	eachSource(t, func(path, text string) {
		code.WriteString(text)
		parts := strings.Split(path, "/")
		for i := range parts {
			files[strings.Join(parts[i:], "/")] = true
		}
	})
	found := 0
	for _, m := range regexp.MustCompile("`([A-Za-z]+)\\.([A-Za-z]+)`").FindAllStringSubmatch(string(document), -1) {
		if m[2] == "go" || m[2] == "Conn" {
			continue
		}
		found++
		if !regexp.MustCompile(`func \(\w+ \*?` + m[1] + `(\[[\w, ]+\])?\) ` + m[2] + `\(`).MatchString(code.String()) {
			t.Errorf("there is no method %s.%s", m[1], m[2])
		}
	}
	for _, m := range regexp.MustCompile("`([a-z_/]+\\.(?:go|sql))`").FindAllStringSubmatch(string(document), -1) {
		found++
		if !files[m[1]] {
			t.Errorf("there is no file %s", m[1])
		}
	}
	if found < 50 {
		t.Errorf("the document names %d files and functions only", found)
	}
}

// A type with more methods is several, and a file with more lines has several purposes.
func TestTypesAndFilesAreSmall(t *testing.T) {
	t.Parallel()
	const mostMethods, mostLines = 20, 300
	method := regexp.MustCompile(`(?m)^func \(\w+ \*?(\w+)`)
	methods := make(map[string]int) // by folder and type
	eachSource(t, func(file, text string) {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(text, "// Code generated") {
			return
		}
		if lines := strings.Count(text, "\n"); lines > mostLines {
			t.Errorf("%s has %d lines", file, lines)
		}
		for _, m := range method.FindAllStringSubmatch(text, -1) {
			methods[path.Dir(file)+": "+m[1]]++
		}
	})
	for name, n := range methods {
		if n > mostMethods {
			t.Errorf("%s has %d methods", name, n)
		}
	}
}

// eachSource calls f with the path, from here and with slashes, and the text of each file of code.
func eachSource(t *testing.T, f func(path, text string)) {
	t.Helper()
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, ".sql") {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil {
			f(filepath.ToSlash(path), string(text))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
