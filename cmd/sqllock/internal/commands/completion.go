package commands

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/console"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
)

const completionHelp = `Prints a script that completes commands, flags and their values, and the names
of leases. Once:

  bash        echo 'source <(sqllock completion bash)' >>~/.bashrc
              (with the package bash-completion)
  zsh         echo 'source <(sqllock completion zsh)' >>~/.zshrc
              (after compinit)
  fish        sqllock completion fish \
                >~/.config/fish/completions/sqllock.fish
  powershell  sqllock completion powershell >>$PROFILE

Names are asked of the server that the command line or SQLLOCK_DB names, if it
answers in a second.`

func completionCommand(c *console.Console) *cobra.Command {
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
				err = root.GenBashCompletionV2(c.Stdout, true)
			case "zsh":
				err = root.GenZshCompletion(c.Stdout)
			case "fish":
				err = root.GenFishCompletion(c.Stdout, true)
			case "powershell":
				err = root.GenPowerShellCompletionWithDesc(c.Stdout)
			default:
				return errors.New("the shell is bash, zsh, fish or powershell")
			}
			return exit.With(exit.Output, err)
		},

		DisableFlagsInUseLine: true,
	}
}
