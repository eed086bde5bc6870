package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestHelpExplainsTopics(t *testing.T) {
	t.Parallel()
	_, overview, _ := runHere(t, nil)
	for _, topic := range topics() {
		code, stdout, stderr := runHere(t, nil, "help", topic.Name())
		if code != 0 || stderr != "" || !strings.Contains(stdout, topic.Long) {
			t.Errorf("%s: code %d, stderr %q, %q", topic.Name(), code, stderr, stdout)
		}
		if !strings.Contains(overview, "sqllock "+topic.Name()) {
			t.Errorf("sqllock --help does not have the topic %s", topic.Name())
		}
		for line := range strings.Lines(stdout) {
			if len([]rune(line)) > 105 {
				t.Errorf("%s: a long line: %s", topic.Name(), line)
			}
		}
	}
}

func TestHelpRefusesWhatIsNoTopic(t *testing.T) {
	t.Parallel()
	for topic, says := range map[string]string{
		"databse":                     `"databse"`,
		"schema appl":                 `"appl"`,
		"postgres://me:s3cret@host/x": "unexpected argument",
	} {
		code, stdout, stderr := runHere(t, nil, append([]string{"help"}, strings.Fields(topic)...)...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, says) || strings.Contains(stderr, "s3cret") {
			t.Errorf("%s: code %d, stdout %q, stderr %q", topic, code, stdout, stderr)
		}
	}
}

func TestHelpHasEveryVariable(t *testing.T) {
	t.Parallel()
	_, stdout, _ := runHere(t, nil, "help", "environment")
	sources, err := filepath.Glob("*.go")
	must(t, err)
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		code, err := os.ReadFile(source)
		must(t, err)
		for _, found := range regexp.MustCompile(`(SQLLOCK_[A-Z_]+)|getenv\("(\w+)"\)`).FindAllStringSubmatch(string(code), -1) {
			if !strings.Contains(stdout, found[1]+found[2]) {
				t.Errorf("%s: help does not have %s", source, found[0])
			}
		}
	}
}
