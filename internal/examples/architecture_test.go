package examples_test

import (
	"io/fs"
	"os"
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
