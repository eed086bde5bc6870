package run

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/flags"
)

// flock has the flags of flock(1), and what to use here instead. Those that both have, such as --shared, are missing.
var flock = map[string]string{
	"-n": "--wait 0", "--nb": "--wait 0", "--nonblock": "--wait 0",
	"-w": "--wait TIME, with a unit: --wait 10s", "--timeout": "--wait TIME, with a unit: --wait 10s",
	"-E": "--on-held CODE", "--conflict-exit-code": "--on-held CODE",
	"-c": "-- sh -c COMMAND, after NAME", "--command": "-- sh -c COMMAND, after NAME",
	"-s": "--shared",
	"-x": exclusive, "-e": exclusive, "--exclusive": exclusive,
	"-u": released, "--unlock": released,
	"--fcntl": "no flag: the lock is in a database, not on a file",
	"-o":      inherited, "--close": inherited, "-F": inherited, "--no-fork": inherited,
}

const (
	exclusive = "no flag: a lock is exclusive without --shared or --limit"
	released  = "no flag: the lock is released when COMMAND ends; sqllock release takes that of others"
	inherited = "no flag: sqllock holds the lock, and COMMAND inherits nothing"
)

// flockLetters matches a group of flock's short flags, with the number that may follow. Anything else may be a secret.
var flockLetters = regexp.MustCompile(`^[nwEcsxeuoF]+=?[0-9.]*$`)

// FlagError is flags.Error. It also tells users of flock the name of a flag here.
func FlagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return flags.Error(cmd, err)
	}
	flag := "--" + unknown.GetSpecifiedName()
	if letters := unknown.GetSpecifiedShortnames(); letters != "" {
		if !flockLetters.MatchString(letters) {
			return flags.Error(cmd, err)
		}
		flag = "-" + letters[:1]
	}
	instead, known := flock[flag]
	if !known {
		return flags.Error(cmd, err)
	}
	return fmt.Errorf("unknown flag: %s; instead of flock's %[1]s use %s; see sqllock run --help", flag, instead)
}
