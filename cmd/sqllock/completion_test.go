package main

import (
	"os"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/locktest"
)

// complete returns what a shell would offer for the last of these words, and its directive.
func complete(t *testing.T, e env, words ...string) string {
	t.Helper()
	code, stdout, stderr := runHere(t, e, append([]string{"__completeNoDesc"}, words...)...)
	if code != 0 {
		t.Errorf("%q: code %d, stderr %q", words, code, stderr)
	}
	return strings.Join(strings.Fields(stdout), " ")
}

// The directives for a shell that has no match: complete files, or nothing.
const (
	files  = ":0"
	nofile = ":4"
)

func TestCompletion(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for words, want := range map[string]string{
		"sch":                        "schema " + nofile,
		"help ex":                    "exit-codes " + nofile,
		"help schema a":              "apply " + nofile,
		"completion ":                "bash zsh fish powershell " + nofile,
		"run --kind ":                "lease session " + nofile,
		"ls --kind ":                 "lease session all " + nofile,
		"release --kind=":            "lease session " + nofile,
		"bench --kind ":              "lease session " + nofile,
		"run --log-format ":          "text json " + nofile,
		"schema print --dialect ":    "postgres mysql sqlite " + nofile,
		"run --ttl ":                 nofile,
		"run --db ":                  nofile,
		"run --db-file ":             files,
		"run --wait ":                "0 10s 1m 1h forever " + nofile,
		"run x -- ./rep":             files,
		"purge ":                     nofile,
		"show --db-file no-file ":    nofile,
		"run --db not-a-database x":  nofile,
		"run --db sqlite:/no/file x": nofile,
	} {
		e := clean(t)
		if got := complete(t, e, strings.Split(words, " ")...); got != want {
			t.Errorf("%q: offers %q, want %q", words, got, want)
		}
		if left, err := os.ReadDir(e["HOME"]); err != nil || len(left) > 0 {
			t.Errorf("%q: has left %v, %v", words, left, err)
		}
	}
}

func TestCompletionOfNames(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db testPlace) {
		e := on(t, db.url)
		for _, command := range []string{"run", "ls", "show", "release", "watch"} {
			if got := complete(t, e, command, ""); got != nofile { // there are no tables yet
				t.Errorf("%s offers %q", command, got)
			}
		}
		call(t, e, 0, nil, "schema", "apply")
		for _, name := range []string{"nightly", "nightly/eu", "import", "night $(reboot)", "nightly\x1b[2J", "night\tly"} {
			call(t, e, 0, nil, "run", name, "--", "true")
		}
		for _, command := range []string{"run", "ls", "show", "release"} {
			if got := complete(t, e, command, "ni"); got != "nightly nightly/eu "+nofile {
				t.Errorf("%s offers %q", command, got)
			}
		}
		if got := complete(t, clean(t), "show", "--db", db.url, "i"); got != "import "+nofile {
			t.Errorf("with --db it offers %q", got)
		}
		if got := complete(t, e, "show", "import", ""); got != nofile {
			t.Errorf("after the name it offers %q", got)
		}
	})
}

func TestCompletionOfNamesSaysNothingOfADatabaseThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for _, url := range []string{"postgres://me:s3cret@127.0.0.1:1/x", "mysql://me:s3cret@127.0.0.1:1/x", "postgres://me:s3cret/@127.0.0.1/x"} {
		p := start(t, on(t, url), "__complete", "run", "--db", url, "")
		if got := string(p.rest()); got != nofile+"\n" {
			t.Errorf("offers %q", got)
		}
		if code := p.exit(); code != 0 || strings.Contains(p.errors(), "s3cret") {
			t.Errorf("code %d, stderr %q", code, p.errors())
		}
	}
}

func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		code, stdout, stderr := runHere(t, clean(t), "completion", shell)
		if code != 0 || stderr != "" || !strings.Contains(stdout, "__complete") {
			t.Errorf("%s: code %d, stderr %q, script %.80q", shell, code, stderr, stdout)
		}
	}
	for _, args := range [][]string{{"completion"}, {"completion", "tcsh"}, {"completion", "bash", "zsh"}} {
		if code, stdout, stderr := runHere(t, nil, args...); code != exitUsage || stdout != "" || !strings.Contains(stderr, "powershell") {
			t.Errorf("%q: code %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
	}
}
