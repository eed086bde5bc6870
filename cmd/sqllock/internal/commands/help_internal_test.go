package commands

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/console"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/flags"
)

func TestHelpExplainsTopics(t *testing.T) {
	t.Parallel()
	_, overview, _ := runArgs(t)
	for _, topic := range topics() {
		code, stdout, stderr := runArgs(t, "help", topic.Name())
		if code != 0 || stderr != "" || !strings.Contains(stdout, topic.Long) {
			t.Errorf("%s: code %d, stderr %q, %q", topic.Name(), code, stderr, stdout)
		}
		if !strings.Contains(overview, "sqllock "+topic.Name()) {
			t.Errorf("sqllock --help does not have the topic %s", topic.Name())
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
		code, stdout, stderr := runArgs(t, append([]string{"help"}, strings.Fields(topic)...)...)
		if code != exit.Usage || stdout != "" || !strings.Contains(stderr, says) || strings.Contains(stderr, "s3cret") {
			t.Errorf("%s: code %d, stdout %q, stderr %q", topic, code, stdout, stderr)
		}
	}
}

func TestHelpHasEveryVariable(t *testing.T) {
	t.Parallel()
	_, stdout, _ := runArgs(t, "help", "environment")
	sources, err := filepath.Glob("../*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	all := 0
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		code, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`(SQLLOCK_[A-Z_]+)|Getenv\("(\w+)"\)`).FindAllStringSubmatch(string(code), -1) {
			if all++; !strings.Contains(stdout, found[1]+found[2]) {
				t.Errorf("%s: help does not have %s", source, found[0])
			}
		}
	}
	if all < 10 {
		t.Errorf("there are %d variables in the code", all)
	}
}

// runArgs runs the program inside the test process.
func runArgs(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code, _ = Run(t.Context(), &console.Console{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs}, args)
	return code, out.String(), errs.String()
}

// all returns a command and all that are below it.
func all(cmd *cobra.Command) []*cobra.Command {
	found := []*cobra.Command{cmd}
	for _, below := range cmd.Commands() {
		found = append(found, all(below)...)
	}
	return found
}

func TestHelpFitsOnATerminal(t *testing.T) {
	t.Parallel()
	for _, cmd := range all(rootCommand(&console.Console{})) {
		_, stdout, _ := runArgs(t, append([]string{"help"}, strings.Fields(cmd.CommandPath())[1:]...)...)
		if stdout == "" {
			t.Errorf("%s has no help", cmd.CommandPath())
		}
		for line := range strings.Lines(cmd.Long + "\n" + cmd.Example) {
			if strings.HasPrefix(line, " ") && len([]rune(strings.TrimSuffix(line, "\n"))) > flags.ColumnsIndented {
				t.Errorf("%s: more than %d columns: %s", cmd.CommandPath(), flags.ColumnsIndented, line)
			}
		}
		for line := range strings.Lines(stdout) {
			if len([]rune(strings.TrimSuffix(line, "\n"))) > flags.Columns {
				t.Errorf("%s: more than %d columns: %s", cmd.CommandPath(), flags.Columns, line)
			}
		}
	}
}
