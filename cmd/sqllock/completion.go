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

// completeFlag has a flag completed with the values that it can have.
func completeFlag(cmd *cobra.Command, flag string, values ...cobra.Completion) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) // fails without the flag
}

// completeFiles has a flag completed with files, which others are not.
func completeFiles(cmd *cobra.Command, flag string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)) // fails without the flag
}

const mostCompletions = 200

// harmless matches a name that no shell and no terminal takes for anything else. Names are by others.
var harmless = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./:@%+=,-]*$`)

// completeName completes the argument NAME with those of leases, and leaves those that follow to then.
//
// Whatever keeps it from that, it offers nothing and says nothing. An SQLite file is left alone: to
// open it may be to create it.
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
