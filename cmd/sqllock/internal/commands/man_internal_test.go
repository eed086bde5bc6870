package commands

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/console"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/flags"
)

func TestTheManualHasAllThatTheHelpHas(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := runArgs(t, "man")
	if code != 0 || stderr != "" {
		t.Errorf("code %d, stderr %q", code, stderr)
	}
	has := func(text string) {
		if !strings.Contains(stdout, text) {
			t.Errorf("the manual does not have %q", text)
		}
	}
	root := rootCommand(&console.Console{})
	for _, cmd := range all(root) {
		if cmd.HasSubCommands() {
			continue
		}
		has(escape(cmd.Short))
		for line := range strings.Lines(body(cmd) + "\n" + cmd.Example) {
			has(escape(strings.TrimSuffix(line, "\n")))
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			_, usage := pflag.UnquoteUsage(f)
			has(`\-\-` + escape(f.Name))
			has(escape(usage))
		})
	}
	for line := range strings.Lines(stdout) {
		if text := strings.TrimPrefix(line, `\&`); strings.HasPrefix(text, "'") || text != line && !strings.HasPrefix(text, ".") {
			t.Errorf("a line is a request by mistake, or needlessly none: %s", line)
		}
	}
}

func TestAManualEscapesWhatRoffObeys(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		".SH x":     `\&.SH x`,
		"'quoted'":  `\(aqquoted\(aq`,
		`a\fB --b`:  `a\efB \-\-b`,
		"~/.config": `\(ti/.config`,
	} {
		if got := escape(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	var p page
	p.text("First.\nSecond.\n\n  .indented\n\n  more\nAfter:\n  x")
	const want = ".PP\nFirst.\nSecond.\n.PP\n.nf\n  .indented\n\n  more\n.fi\n.PP\nAfter:\n.PP\n.nf\n  x\n.fi\n"
	if got := p.String(); got != want {
		t.Errorf("it is %q\nwant %q", got, want)
	}
}

// A manual that the programs for manuals complain about, or that is wider than a terminal, is a defect.
func TestTheManualIsShown(t *testing.T) {
	t.Parallel()
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("there is no groff, which shows manuals")
	}
	_, page, _ := runArgs(t, "man")
	show := exec.CommandContext(t.Context(), groff, "-man", "-Tutf8", "-Kutf8", "-P-cbou", "-rLL=80n", "-ww")
	show.Stdin = strings.NewReader(page)
	var complaints strings.Builder
	show.Stderr = &complaints
	out, err := show.Output()
	if err != nil || complaints.Len() > 0 {
		t.Fatalf("%v: %s", err, complaints.String())
	}
	for line := range strings.Lines(string(out)) {
		if len([]rune(strings.TrimSuffix(line, "\n"))) > flags.Columns {
			t.Errorf("more than %d columns: %s", flags.Columns, line)
		}
	}
}
