package main

import (
	"context"
	"errors"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/schema"
)

const completionHelp = `Prints a script that completes commands, flags and their values, and the names of leases. Once:

  bash        echo 'source <(sqllock completion bash)' >>~/.bashrc   (with the package bash-completion)
  zsh         echo 'source <(sqllock completion zsh)' >>~/.zshrc     (after compinit)
  fish        sqllock completion fish >~/.config/fish/completions/sqllock.fish
  powershell  sqllock completion powershell >>$PROFILE

Names are asked of the server that the command line or SQLLOCK_DB names, if it answers in a second.`

func (m *Main) completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:       "completion bash|zsh|fish|powershell",
		Short:     "Print the script that completes commands in a shell",
		Long:      completionHelp,
		ValidArgs: []cobra.Completion{"bash", "zsh", "fish", "powershell"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("usage: sqllock completion bash|zsh|fish|powershell")
			}
			root := cmd.Root()
			var err error
			switch args[0] {
			case "bash":
				err = root.GenBashCompletionV2(m.Stdout, true)
			case "zsh":
				err = root.GenZshCompletion(m.Stdout)
			case "fish":
				err = root.GenFishCompletion(m.Stdout, true)
			case "powershell":
				err = root.GenPowerShellCompletionWithDesc(m.Stdout)
			default:
				return errors.New("the shell is bash, zsh, fish or powershell")
			}
			return fail(exitOutput, err)
		},

		DisableFlagsInUseLine: true,
	}
}

// completeFlag makes completion offer these values for a flag.
func completeFlag(cmd *cobra.Command, flag string, values ...cobra.Completion) {
	// It fails only if there is no such flag.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// completeFiles makes completion offer files for a flag, which it does not do otherwise.
func completeFiles(cmd *cobra.Command, flag string) {
	// It fails only if there is no such flag.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault))
}

const mostCompletions = 200

// harmless matches a name without special meaning for any shell or terminal. Other users choose the names.
var harmless = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./:@%+=,-]*$`)

// completeName completes the argument NAME with the names of leases. For later arguments it returns the directive then.
//
// On any failure it offers nothing and reports nothing. It does not open an SQLite file, because that could create the
// file.
func (m *Main) completeName(p *place, then cobra.ShellCompDirective) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, then
		}
		return m.leaseNames(cmd, p, start), cobra.ShellCompDirectiveNoFileComp
	}
}

func (m *Main) leaseNames(cmd *cobra.Command, p *place, start string) (names []cobra.Completion) {
	ctx, cancel := context.WithTimeout(cmd.Context(), m.completionTime)
	defer cancel()
	db, err := m.findDatabase(cmd, p)
	if err != nil {
		return nil
	}
	defer db.close()
	if db.dialect == schema.SQLite {
		return nil
	}
	locker, err := db.lease(p.tables, lookTTL, operator)
	if err != nil {
		return nil
	}
	defer func() { _ = locker.Close() }() // it holds nothing
	infos, err := locker.List(ctx, start, func(i leasetable.Info) bool { return harmless.MatchString(i.Name) })
	if err != nil {
		return nil
	}
	for _, info := range infos[:min(len(infos), mostCompletions)] {
		names = append(names, info.Name)
	}
	return names
}
