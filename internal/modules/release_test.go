package modules_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// repository is a small one, with the scripts of this one.
type repository struct {
	t      *testing.T
	folder string
}

func newRepository(t *testing.T) repository {
	t.Helper()
	r := repository{t, t.TempDir()}
	for _, script := range []string{"api", "modules", "release-notes", "tag"} {
		text, err := os.ReadFile("../../scripts/" + script)
		if err != nil {
			t.Fatal(err)
		}
		r.write("scripts/"+script, string(text))
	}
	r.write("go.mod", "module example.org/core\n")
	r.write("adapter/a/go.mod", "module example.org/core/adapter/a\n\nrequire (\n\texample.org/core v0.2.0\n\texample.org/other v1.0.0\n)\n")
	r.write("adapter/b/go.mod", "module example.org/core/adapter/b\n\nrequire example.org/core v0.2.0\n")
	r.write("recipes/go.mod", "module example.org/core/recipes\n\nrequire example.org/core v0.0.0\n\nreplace example.org/core => ..\n")
	r.write("CHANGELOG.md", "# Changelog\n\n## [Unreleased]\n\n- Later.\n\n## [0.2.0] - 2026-01-31\n\n### Added\n\n- Much.\n\n## [0.1.0] - 2025-12-31\n\n- First.\n")
	r.git("init", "-q", "-b", "main")
	r.commit()
	return r
}

func (r repository) write(name, text string) {
	r.t.Helper()
	file := filepath.Join(r.folder, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
		r.t.Fatal(err)
	}
}

func (r repository) git(args ...string) string {
	r.t.Helper()
	out, err := r.run("git", args...)
	if err != nil {
		r.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return out
}

func (r repository) commit() {
	r.t.Helper()
	r.git("add", "-A")
	r.git("commit", "-q", "--allow-empty", "-m", "x")
}

func (r repository) run(program string, args ...string) (string, error) {
	cmd := exec.CommandContext(r.t.Context(), program, args...)
	cmd.Dir = r.folder
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=x", "GIT_AUTHOR_EMAIL=x@example.org", "GIT_COMMITTER_NAME=x", "GIT_COMMITTER_EMAIL=x@example.org")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestOneScriptTagsEveryModule(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	for version, why := range map[string]string{
		"0.2.0":    "is no version",
		"v0.2":     "is no version",
		"v0.3.0":   "CHANGELOG.md has no section",
		"v0.1.0":   "adapter/a/go.mod requires v0.2.0 of the core, not v0.1.0",
		"v02.0.0":  "is no version",
		"v0.2.0;x": "is no version",
	} {
		if out, err := r.run("scripts/tag", version); err == nil || !strings.Contains(out, why) {
			t.Errorf("%s: %v, %s; want %q", version, err, out, why)
		}
	}
	r.write("new", "")
	if out, err := r.run("scripts/tag", "v0.2.0"); err == nil || !strings.Contains(out, "not committed") {
		t.Errorf("with a change: %v, %s", err, out)
	}
	r.commit()
	if tags := r.git("tag"); tags != "" {
		t.Fatalf("the tags are %s", tags)
	}
	const all = "adapter/a/v0.2.0\nadapter/b/v0.2.0\nv0.2.0\n"
	if out, err := r.run("scripts/tag", "v0.2.0"); err != nil || !strings.Contains(out, "git push --atomic origin v0.2.0 adapter/a/v0.2.0 adapter/b/v0.2.0") {
		t.Errorf("%v: %s", err, out)
	}
	if tags := r.git("tag"); tags != all {
		t.Errorf("the tags are %s", tags)
	}
	if out, err := r.run("scripts/tag", "v0.2.0"); err == nil || !strings.Contains(out, "the tag v0.2.0 exists") {
		t.Errorf("again: %v, %s", err, out)
	}
}

func TestTheNotesOfAReleaseAreItsSection(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	for version, want := range map[string]string{"v0.2.0": "### Added\n\n- Much.\n", "v0.1.0": "- First.\n"} {
		if out, err := r.run("scripts/release-notes", version); err != nil || out != want {
			t.Errorf("%s: %v, %q, want %q", version, err, out, want)
		}
	}
}

func TestWhatChangesIncompatiblyIsInTheChangelog(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	// It reports of the core what the file says.
	r.write("apidiff", `#!/bin/sh
case "$*" in
"-m -w "*) echo "$4" >"$3" ;;
*" example.org/core") cat changes ;;
esac
`)
	r.write("changes", "")
	r.commit()
	compare := func(code int, says string) {
		t.Helper()
		out, err := r.run("scripts/api", "./apidiff")
		if (err != nil) != (code != 0) || !strings.Contains(out, says) {
			t.Errorf("%v: %s; want exit code %d and %q", err, out, code, says)
		}
	}
	compare(0, "the interface is compatible with")
	r.write("changes", "- ./pg.(*Locker).List: changed from func() to func(int)\n- package example.org/core/event: removed\n")
	compare(1, "names List")
	compare(1, "names event")
	log, err := os.ReadFile(filepath.Join(r.folder, "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	r.write("CHANGELOG.md", strings.Replace(string(log), "- Later.", "- `List` takes a number. The package `event` is gone.", 1))
	compare(0, "or CHANGELOG.md says what is not")
	r.commit()
	compare(0, "or CHANGELOG.md says what is not") // compared with the commit before
	r.commit()
	compare(1, "names List") // the line is older than that
	r.git("tag", "v1.0.0")
	r.write("CHANGELOG.md", "`List` and `event`, again")
	compare(1, "since v1.0.0 nothing changes incompatibly")
}
