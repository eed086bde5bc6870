package pages_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// stub stands for the programs that the pages run under a lock. It fails if it runs twice at the same time, or if the lock
// that sqllock tells it can be acquired. It asks again (code 69) where the database is too slow to answer.
const stub = `#!/bin/sh
mkdir "$STATE/inside" || { echo "two at once" >>"$STATE/log"; exit 1; }
held=0
for kind in lease session; do
	for try in 1 2 3 4 5; do
		sqllock run --kind $kind --wait 0 --on-held 9 "$SQLLOCK_NAME" -- true
		code=$?
		[ $code = 69 ] || break
	done
	[ $code != 9 ] || held=1
done
echo "held=$held" >>"$STATE/log"
rmdir "$STATE/inside"
`

var stubs = []string{"atlas", "dbmate", "terraform", "pg_dump", "report.sh", "scheduler", "migrate-database", "deploy.sh"}

// command is a call of sqllock on a page, as a line for a shell.
type command struct{ page, line string }

// once reports whether a machine that finds the lock held skips the command.
func (c command) once() bool { return strings.Contains(c.line, "--on-held 0") }

// calls returns how many of the stubs one run of the command calls.
func (c command) calls() int {
	_, under, _ := strings.Cut(c.line, " -- ")
	n := 0
	for _, name := range stubs {
		n += len(regexp.MustCompile(`(^|[ '])`+regexp.QuoteMeta(name)+`( |'|$)`).FindAllString(under, -1))
	}
	return n
}

// commands returns the calls on all pages but that of tern, which has a test with tern itself.
func commands(t *testing.T) (all []command) {
	t.Helper()
	line := regexp.MustCompile(`(?m)^(?:|ExecStart=/usr/local/bin/|.*run: exec )(sqllock run .*)$`)
	add := func(page, line string) {
		all = append(all, command{page, strings.NewReplacer("/opt/app/", "", "./", "").Replace(line)})
	}
	for page, language := range map[string]string{"atlas": "sh", "dbmate": "sh", "terraform": "sh", "systemd": "ini", "github-actions": "yaml"} {
		text := strings.ReplaceAll(strings.Join(blocks(t, page, language), ""), "\\\n", "") // a backslash continues a line
		found := line.FindAllStringSubmatch(text, -1)
		if len(found) == 0 {
			t.Errorf("%s has no command", page)
		}
		for _, m := range found {
			add(page, m[1])
		}
	}
	for _, o := range objects(t) {
		add("kubernetes", strings.Join(o.pod(t).Containers[0].Command, " "))
	}
	return all
}

func TestTheCommandsRunOnOneMachineAtATime(t *testing.T) {
	t.Parallel()
	all := commands(t)
	if len(all) < 10 {
		t.Errorf("there are %d commands", len(all))
	}
	for i, c := range all {
		t.Run(fmt.Sprint(c.page, " ", i), func(t *testing.T) {
			t.Parallel()
			if c.calls() == 0 {
				t.Fatalf("no stub stands for what it runs: %s", c.line)
			}
			state := t.TempDir()
			environment := machine(t, state)
			var both [2]*exec.Cmd
			var out [2]bytes.Buffer
			for i := range both {
				both[i] = exec.CommandContext(t.Context(), "sh", "-c", c.line)
				both[i].Env, both[i].Dir, both[i].Stdout, both[i].Stderr = environment, state, &out[i], &out[i]
				if err := both[i].Start(); err != nil {
					t.Fatal(err)
				}
			}
			for i := range both {
				if err := both[i].Wait(); err != nil {
					t.Errorf("%s: %v: %s", c.line, err, &out[i])
				}
			}
			runs := 2
			if c.once() {
				runs = 1
			}
			log, err := os.ReadFile(filepath.Join(state, "log"))
			if want := strings.Repeat("held=1\n", runs*c.calls()); err != nil || string(log) != want {
				t.Errorf("%s: the log is %q, %v; want %q", c.line, log, err, want)
			}
		})
	}
}

// machine returns the environment of a machine that has the stubs and a database. The stubs use the folder state.
func machine(t *testing.T, state string) []string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range stubs {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(stub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	dsn := database(t).DSN
	return append(os.Environ(), "PATH="+folder+":"+programs+":"+os.Getenv("PATH"), "STATE="+state, "SQLLOCK_DB="+dsn, "DATABASE_URL="+dsn,
		"GITHUB_REPOSITORY=example/app", "GITHUB_RUN_ID=17")
}

// A shell expands all words of an export before it sets the first variable.
func TestThePagesExportTheDatabase(t *testing.T) {
	t.Parallel()
	export := regexp.MustCompile(`(?m)^export .*\n`)
	for _, page := range []string{"atlas", "dbmate", "tern", "terraform"} {
		lines := strings.Join(export.FindAllString(strings.Join(blocks(t, page, "sh"), ""), -1), "")
		cmd := exec.CommandContext(t.Context(), "sh", "-euc", lines+`printf '%s %s' "$SQLLOCK_DB" "${DATABASE_URL-$SQLLOCK_DB}"`)
		cmd.Env = []string{}
		const url = "postgres://user:password@host:5432/database"
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != url+" "+url {
			t.Errorf("%s: after its exports SQLLOCK_DB and DATABASE_URL are %q, %v", page, out, err)
		}
	}
}
