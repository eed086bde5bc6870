package main

import (
	"os"
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
		"-y":                                  "unknown flag: -y",
		"-V":                                  "unknown flag: -V",
		"--=s3cr3t":                           "has no name of a flag",
		"--owner=":                            "--owner is empty",
		"--owner " + strings.Repeat("o", 256): "--owner has 256 bytes, the limit is 255",
		"--wait 0 --on-held -1":               "0 to 255",
		"--wait 0 --on-held 256":              "0 to 255",
		"--wait 0 --on-held x":                `"x"`,
		"--wait 5":                            "0 or forever; 5 seconds are 5s",
		"--at-least 90":                       "such as 90s, 5m or 1h; 90 seconds are 90s",
		"--ttl 0":                             "--ttl 0s is too short; it must be at least 200ms",
		"--kind session --ttl 1ms --db postgres://h/d": "--ttl 1ms is out of range",
		"--prefix a;b": `--prefix: table prefix "a;b": only letters`,
		"--schema a":   `--schema: table schema "a": only PostgreSQL`,
		"--db s3cr3t":  "--db: this is not the name of a database",

		"-n":                     "unknown flag: -n; instead of flock's -n use --wait 0; see sqllock run --help",
		"--nonblock":             "instead of flock's --nonblock use --wait 0;",
		"-w 5":                   "instead of flock's -w use --wait TIME, with a unit: --wait 10s;",
		"-w5":                    "instead of flock's -w use --wait TIME",
		"--timeout=5":            "instead of flock's --timeout use --wait TIME",
		"-nE 9":                  "instead of flock's -n use --wait 0;",
		"-E 9":                   "instead of flock's -E use --on-held CODE;",
		"--conflict-exit-code=9": "instead of flock's --conflict-exit-code use --on-held CODE;",
		"-c s3cr3t":              "instead of flock's -c use -- sh -c COMMAND, after NAME;",
		"-s":                     "instead of flock's -s use --shared;",
		"-x":                     "a lock is exclusive without --shared or --limit",
		"-u":                     "the lock is released when COMMAND ends",
		"--close":                "COMMAND inherits nothing",
		"--fcntl":                "the lock is in a database, not on a file",

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

func TestFlagsOfFlockWithoutRun(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-n", "name", "true"}, {"-n", "run", "name", "true"}} {
		code, _, stderr := runHere(t, clean(t), args...)
		if code != exitUsage || !strings.Contains(stderr, "instead of flock's -n use --wait 0; see sqllock run --help") {
			t.Errorf("%q: code %d, stderr %q", args, code, stderr)
		}
	}
	if _, _, stderr := runHere(t, clean(t), "ls", "-n"); strings.Contains(stderr, "flock") {
		t.Errorf("ls -n: stderr %q", stderr)
	}
}

func TestErrorsSayWhatNamedTheDatabase(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"s3cr3t", "redis://u:s3cr3t@h/d", "postgres://u:s3cr3t@h/d?sslmode=x", "mysql://u:s3cr3t@h/d?x=%zz", "sqlite:"} {
		file := filepath.Join(t.TempDir(), "x.env")
		must(t, os.WriteFile(file, []byte(url), 0o600))
		for source, test := range map[string]struct {
			env  env
			args []string
		}{
			"SQLLOCK_DB":            {env{"SQLLOCK_DB": url}, nil},
			"--db":                  {nil, []string{"--db", url}},
			"the file of --db-file": {nil, []string{"--db-file", file}},
		} {
			code, _, stderr := runHere(t, test.env, append([]string{"ls"}, test.args...)...)
			if code != exitUsage || !strings.HasPrefix(stderr, "sqllock: "+source+": ") || strings.Contains(stderr, "s3cr3t") {
				t.Errorf("%s of %s: code %d, stderr %q", url, source, code, stderr)
			}
		}
	}
}
