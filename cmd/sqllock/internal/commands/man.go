package commands

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/console"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/flags"
)

const manHelp = `Prints this help, all of it, as a manual page:

  sqllock man | man -l -
  sqllock man >/usr/local/share/man/man1/sqllock.1

The packages for Debian and for RPM have it.`

func manCommand(c *console.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "man",
		Short: "Print the manual page",
		Long:  manHelp,
		Args:  flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(c.Stdout, manual(cmd.Root()))
			return exit.With(exit.Output, err)
		},
	}
}

// manual returns the manual page of a program: the help of all its commands and topics, in roff with the macros of man.
func manual(root *cobra.Command) string {
	var p page
	p.line(`.TH SQLLOCK 1 "" %s "User Commands"`, quote(root.Name()+" "+thisVersion().Release))
	p.line(".nh") // names and flags are not hyphenated
	p.line(".SH NAME")
	p.line(`%s \- %s`, root.Name(), escape(lowerFirst(root.Short)))
	p.line(".SH SYNOPSIS")
	for i, cmd := range runnable(root) {
		if i > 0 {
			p.line(".br")
		}
		p.line(`.B %s`, escape(cmd.UseLine()))
	}
	p.line(".SH DESCRIPTION")
	p.text(body(root))
	p.line(".SH COMMANDS")
	for _, cmd := range runnable(root) {
		p.command(cmd)
	}
	for _, topic := range root.Commands() {
		if topic.IsAdditionalHelpTopicCommand() {
			p.line(".SH %s", quote(strings.ToUpper(strings.ReplaceAll(topic.Name(), "-", " "))))
			p.line(".I %s.", escape(topic.Short))
			p.text(topic.Long)
		}
	}
	return p.String()
}

// runnable returns the commands below a command that do something other than to show help, in order.
func runnable(cmd *cobra.Command) (found []*cobra.Command) {
	for _, below := range cmd.Commands() {
		switch {
		case below.HasSubCommands():
			found = append(found, runnable(below)...)
		case below.Runnable() && !below.Hidden:
			found = append(found, below)
		}
	}
	return found
}

// body returns the help text of a command without the references to topics, which are on the same page.
func body(cmd *cobra.Command) string {
	return strings.TrimSpace(strings.TrimSuffix(cmd.Long, flags.SeeAlso))
}

// page is a manual page.
type page struct{ strings.Builder }

// line adds a line of roff.
func (p *page) line(format string, args ...any) { _, _ = fmt.Fprintf(p, format+"\n", args...) }

func (p *page) command(cmd *cobra.Command) {
	p.line(".SS %s", quote(cmd.UseLine()))
	p.line("%s.", escape(cmd.Short))
	p.text(body(cmd))
	if cmd.Example != "" {
		p.line(".PP")
		p.line("Examples:")
		p.text(cmd.Example)
	}
	cmd.LocalFlags().VisitAll(p.flag)
}

func (p *page) flag(f *pflag.Flag) {
	value, usage := pflag.UnquoteUsage(f)
	name := `\fB\-\-` + escape(f.Name) + `\fR`
	if f.Shorthand != "" {
		name = `\fB\-` + f.Shorthand + `\fR, ` + name
	}
	if value != "" {
		name += ` \fI` + escape(value) + `\fR`
	}
	switch f.DefValue {
	case "", "0", "0s", "false":
	default:
		usage += " (default " + f.DefValue + ")"
	}
	p.line(".TP")
	p.line("%s", name)
	p.line("%s", escape(usage))
}

// text adds a help text. A paragraph is filled; a line that begins with a blank stays as it is, as examples and tables do.
func (p *page) text(text string) {
	filled, begins := true, true
	for line := range strings.SplitSeq(text, "\n") {
		indented := strings.HasPrefix(line, " ")
		switch {
		case line == "":
			begins = true
			continue
		case indented && filled:
			p.line(".PP\n.nf")
		case indented && begins:
			p.line("")
		case !indented && !filled:
			p.line(".fi\n.PP")
		case !indented && begins:
			p.line(".PP")
		}
		filled, begins = !indented, false
		p.line("%s", escape(line))
	}
	if !filled {
		p.line(".fi")
	}
}

// escape returns a text for a line of roff.
func escape(text string) string {
	text = strings.NewReplacer(`\`, `\e`, `-`, `\-`, `'`, `\(aq`, "`", `\(ga`, `^`, `\(ha`, `~`, `\(ti`).Replace(text)
	if strings.HasPrefix(text, ".") { // it would be a request; so would a ', which is replaced
		text = `\&` + text
	}
	return text
}

// quote returns a text as one argument of a request.
func quote(text string) string { return `"` + strings.ReplaceAll(escape(text), `"`, `\(dq`) + `"` }

func lowerFirst(text string) string { return strings.ToLower(text[:1]) + text[1:] }
