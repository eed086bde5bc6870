package main

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestFlagsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	e := clean(t)
	e["SQLLOCK_DB"] = "sqlite:" + filepath.Join(t.TempDir(), "x.db")
	for flags, says := range map[string]string{
		"--limit 0":                           "--limit is less than 1",
		"--limit -1":                          "--limit is less than 1",
		"--limit many":                        `"many"`,
		"--at-least -1s":                      "--at-least is negative",
		"--at-least long":                     `"long"`,
		"--owner=":                            "--owner is empty",
		"--owner " + strings.Repeat("o", 256): "--owner has 256 bytes, the limit is 255",
		"--wait 0 --on-held -1":               "0 to 255",
		"--wait 0 --on-held 256":              "0 to 255",
		"--wait 0 --on-held x":                `"x"`,

		"--kind session --limit 2":                 "--limit is for leases: leave it out, or --kind session",
		"--kind session --at-least 1h":             "--at-least is for leases: leave it out, or --kind session",
		"--kind session --wait 1s --give-up-early": "--give-up-early is for leases: leave it out, or --kind session",
		"--shared --limit 2":                       "leave out --shared or --limit",
		"--shared --at-least 1h":                   "leave out --at-least or --shared",
		"--limit 2 --at-least 1h":                  "leave out --at-least or --limit",
		"--give-up-early":                          "--give-up-early is for a wait that ends: leave it out",
		"--give-up-early --wait 0":                 "--give-up-early is for a wait that ends: leave it out",
		"--give-up-early --wait forever":           "--give-up-early is for a wait that ends: leave it out",
		"--on-held 0":                              "--on-held is for a wait that ends: leave it out",
		"--on-held 0 --wait forever":               "--on-held is for a wait that ends: leave it out",
		"--db sqlite:x.db --db-file x.env":         "--db and --db-file both name a database: leave out one of them",
	} {
		code, stdout, stderr := runHere(t, e, append(append([]string{"run"}, strings.Fields(flags)...), "n", "--", "echo", "not run")...)
		if code != 64 || stdout != "" || !strings.HasPrefix(stderr, "sqllock: ") || !strings.Contains(stderr, says) {
			t.Errorf("%s: code %d, stdout %q, stderr %q; want 64 and %q", flags, code, stdout, stderr, says)
		}
	}
}
