package flags

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// plain matches a word that may be shown: a mistyped command or flag, but not a database URL or password in the wrong
// place.
var plain = regexp.MustCompile(`^[a-z-]+$`)

// Error says which flag is wrong, and what it accepts. It hides what may be a part of a database URL.
func Error(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	var unknown *pflag.NotExistError
	switch {
	case errors.As(err, &invalid):
		return badValue(invalid)
	case errors.As(err, &unknown):
		return fmt.Errorf("%s; see %s --help", unknownFlag(cmd.Flags(), unknown), cmd.CommandPath())
	case strings.ContainsAny(err.Error(), "@=") || strings.Contains(err.Error(), "://"):
		return fmt.Errorf("an argument that begins with -- has no name of a flag; see %s --help", cmd.CommandPath())
	}
	return err
}

// badValue says what the value of a flag should be.
func badValue(err *pflag.InvalidValueError) error {
	flag, value := err.GetFlag(), " "+strconv.Quote(err.GetValue())
	if strings.ContainsAny(value, "@=") || strings.Contains(value, "://") {
		value = ""
	}
	is := "it is " + map[string]string{"int": "a whole number", "duration": "a time such as 90s, 5m or 1h", "bool": "true or false"}[flag.Value.Type()]
	if cause := err.Unwrap(); is == "it is " && cause != nil {
		is = cause.Error()
	}
	if flag.Value.Type() == "duration" {
		is += MissingUnit(err.GetValue())
	}
	return fmt.Errorf("invalid argument%s for %q flag: %s", value, "--"+flag.Name, is)
}

// MissingUnit advises on a time that is a number without a unit, as other programs take it. Otherwise it is empty.
func MissingUnit(text string) string {
	if number.MatchString(text) {
		return "; " + text + " seconds are " + text + "s"
	}
	return ""
}

var number = regexp.MustCompile(`^[0-9]{1,9}(\.[0-9]{1,9})?$`)

// unknownFlag describes an unknown flag, and suggests the flag that was probably meant.
func unknownFlag(flags *pflag.FlagSet, err *pflag.NotExistError) string {
	name, dashes := err.GetSpecifiedName(), "--"
	if letters, _, _ := strings.Cut(err.GetSpecifiedShortnames(), "="); letters != "" {
		if flags.Lookup(letters) != nil {
			return fmt.Sprintf("unknown flag: -%s; it is --%s", letters, letters)
		}
		name, dashes = letters, "-"
	}
	if dashes == "--" && plain.MatchString(name) || dashes == "-" && len(name) == 1 { // one letter is no secret
		return "unknown flag: " + dashes + name
	}
	begins := ""
	flags.VisitAll(func(flag *pflag.Flag) {
		if strings.HasPrefix(name, flag.Name) && len(flag.Name) > len(begins) {
			begins = flag.Name
		}
	})
	if begins != "" {
		return fmt.Sprintf("unknown flag that begins as --%s does: a blank or a = stands after that", begins)
	}
	return "a flag is not known"
}

// NoArguments refuses arguments, without showing a database URL that was meant for --db.
func NoArguments(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case plain.MatchString(args[0]):
		return fmt.Errorf("unknown command or argument %q; see %s --help", args[0], cmd.CommandPath())
	}
	return fmt.Errorf("unexpected argument; a database is named by --db, --db-file or SQLLOCK_DB; see %s --help", cmd.CommandPath())
}
