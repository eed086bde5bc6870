package flags

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// choice is the value of a flag that accepts only a few values.
type choice struct {
	*string
	of []string
}

// AddChoice adds a flag that accepts only the values of; completion offers them. The initial value is the default.
func AddChoice(cmd *cobra.Command, value *string, name, usage string, of ...string) {
	cmd.Flags().Var(choice{value, of}, name, usage)
	Complete(cmd, name, of...)
}

func (c choice) Set(text string) error {
	if !slices.Contains(c.of, text) {
		last := len(c.of) - 1
		return errors.New("it is " + strings.Join(c.of[:last], ", ") + " or " + c.of[last])
	}
	*c.string = text
	return nil
}

// String implements pflag.Value, also for the zero choice.
func (c choice) String() string {
	if c.string == nil {
		return ""
	}
	return *c.string
}

func (choice) Type() string { return "choice" }
