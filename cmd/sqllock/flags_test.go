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
		"--limit many":                        `invalid argument "many" for "--limit" flag: it is a whole number`,
		"--at-least -1s":                      "--at-least is negative",
		"--at-least long":                     `invalid argument "long" for "--at-least" flag: it is a time such as 90s, 5m or 1h`,
		"--shared=maybe":                      `invalid argument "maybe" for "--shared" flag: it is true or false`,
		"--limit postgres://u:s3cr3t@h/d":     `invalid argument for "--limit" flag: it is a whole number`,
		"--kind a=s3cr3t":                     `invalid argument for "--kind" flag: it is lease or session`,
		"--bogus=s3cr3t":                      "unknown flag: --bogus; see sqllock run --help",
		"--dbs3cr3t":                          "unknown flag that begins as --db does",
		"--s3cr3t":                            "a flag is not known; see sqllock run --help",
		"-db postgres://u:s3cr3t@h/d":         "unknown flag: -db; it is --db",
		"-db=postgres://u:s3cr3t@h/d":         "unknown flag: -db; it is --db",
		"-s3cr3t":                             "a flag is not known",
		"-x":                                  "unknown flag: -x",
		"--=s3cr3t":                           "has no name of a flag",
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
		if code != 64 || stdout != "" || strings.Contains(stderr, "s3cr3t") || strings.Contains(stderr, "strconv") || !strings.HasPrefix(stderr, "sqllock: ") || !strings.Contains(stderr, says) {
			t.Errorf("%s: code %d, stdout %q, stderr %q; want 64 and %q", flags, code, stdout, stderr, says)
		}
	}
}
