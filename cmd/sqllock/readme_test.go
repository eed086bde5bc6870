package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/locktest"
)

// The commands of the README and the docs run as printed, except for the command under the lock.
func TestTheCommandsOfTheDocumentsWork(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := servers["PostgreSQL"](t)
	file := filepath.Join(t.TempDir(), "sqllock.env")
	must(t, os.WriteFile(file, []byte("SQLLOCK_DB="+db.DSN+"\n"), 0o600))
	call(t, on(t, db.DSN), 0, nil, "schema", "apply")

	commands := documentedCommands(t)
	if locktest.OldPostgres(t, db.DB.DB) { // it warns
		commands = slices.DeleteFunc(commands, func(command string) bool { return strings.HasPrefix(command, "sqllock doctor") })
	}
	if len(commands) < 10 {
		t.Fatalf("there are %d commands", len(commands))
	}
	for _, command := range commands {
		command = strings.ReplaceAll(command, "/etc/sqllock.env", file)
		want := ""
		if before, _, found := strings.Cut(command, " -- "); found {
			command, want = before+" -- echo ran", "ran\n"
		}
		sh := exec.CommandContext(t.Context(), "sh", "-c", command)
		sh.Env = append(os.Environ(), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"), "SQLLOCK_DB="+db.DSN, "GITHUB_RUN_ID=17")
		out, err := sh.CombinedOutput()
		out = waitsForDatabase.ReplaceAll(out, nil)
		if err != nil || want != "" && string(out) != want {
			t.Errorf("%s: %v; it wrote %q", command, err, out)
		}
		call(t, on(t, db.DSN), 0, nil, "release", "--force", "nightly") // --at-least keeps it held
	}
}

// documentedCommands finds the calls of sqllock in shell lines, crontabs, systemd units, CI files and YAML lists.
func documentedCommands(t *testing.T) (commands []string) {
	t.Helper()
	var text []byte
	for _, document := range []string{"README.md", "docs/start.md", "docs/commands.md", "docs/operations.md"} {
		part, err := os.ReadFile("../../" + document)
		must(t, err)
		text = append(text, part...)
	}
	blocks := regexp.MustCompile("(?s)\n```[a-z]+\n(.*?)```").FindAllSubmatch(text, -1)
	line := regexp.MustCompile(`(?m)^(?:|\$ |[0-9* ]+/usr/local/bin/|ExecStart=/usr/local/bin/|.*run: (?:exec )?)(sqllock .*)$`)
	list := regexp.MustCompile(`(?m)^ *command: \[(sqllock, .*)\]$`)
	for _, block := range blocks {
		for _, found := range line.FindAllSubmatch(block[1], -1) {
			if command := string(found[1]); !strings.HasPrefix(command, "sqllock watch") { // it runs forever
				commands = append(commands, command)
			}
		}
		for _, found := range list.FindAllSubmatch(block[1], -1) {
			commands = append(commands, strings.ReplaceAll(string(found[1]), ", ", " "))
		}
	}
	return commands
}
