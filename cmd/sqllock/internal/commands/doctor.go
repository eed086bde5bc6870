package commands

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/console"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/database"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/doctor"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/flags"
)

const doctorHelp = `Asks the database whether it can be trusted with locks, and says line by line
what it found:

  ✓  all is well
  !  something is to be known or to be done, for some kinds of lock at
     least
  ✗  leases do not work here: the database cannot be reached or written
     to, or has no tables

and then which kinds of lock are safe here, and why; a - marks those that this
database does not have. Nothing is changed, but for the file and the tables of
SQLite, which are made as by every command. The exit code is 0 if all is ✓, 78
if there is a !, and 69 if there is a ✗ among what was found; the verdicts on
kinds of lock do not count.`

// exam is one call of sqllock doctor.
type exam struct {
	*console.Console
	database.Flags
	json bool
}

func doctorCommand(c *console.Console) *cobra.Command {
	e := &exam{Console: c}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say which kinds of lock are safe on a database, and why",
		Long:  flags.Help(doctorHelp, flags.SeeAlso),
		Args:  flags.NoArguments,
		RunE:  e.run,
	}
	e.AddFlags(cmd)
	flags.AddJSON(cmd, &e.json)
	return cmd
}

func (e *exam) run(cmd *cobra.Command, _ []string) error {
	db, err := e.OpenDatabase(cmd, e.Console)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := e.ValidateTables(db.Dialect); err != nil {
		return exit.With(exit.Usage, err)
	}
	report := doctor.Examine(cmd.Context(), db.DoctorTarget(e.Tables))
	if e.json {
		err = console.WriteJSON(e.Stdout, report, "  ")
	} else {
		err = printReport(e.Stdout, report)
	}
	switch {
	case err != nil:
		return exit.With(exit.Output, err)
	case report.Worst() == doctor.Fail:
		return &exit.Error{Code: exit.Unavailable}
	case report.Worst() == doctor.Warn:
		return &exit.Error{Code: exit.Mind}
	}
	return nil
}

var marks = map[doctor.Level]string{doctor.OK: "✓", doctor.Warn: "!", doctor.Fail: "✗", doctor.None: "-"}

// printReport prints a report for people, in lines of up to 80 characters unless a word is longer.
func printReport(w io.Writer, r doctor.Report) error {
	var b strings.Builder
	list := func(findings []doctor.Finding) {
		for _, f := range findings {
			head := fmt.Sprintf("%s %-12s", marks[f.Level], f.ID)
			for _, line := range wrapped(console.Printable(f.Text), 65) {
				_, _ = fmt.Fprintf(&b, "%s %s\n", head, line)
				head = strings.Repeat(" ", 14)
			}
			arrow := "→ "
			for _, line := range wrapped(console.Printable(f.Advice), 63) {
				_, _ = fmt.Fprintf(&b, "%s %s%s\n", head, arrow, line)
				arrow = "  "
			}
		}
	}
	list(r.Findings)
	b.WriteString("\nWhich kinds of lock are safe here:\n")
	list(r.Verdicts)
	_, err := io.WriteString(w, b.String())
	return err
}

// wrapped splits a text into lines of up to width characters.
func wrapped(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case len([]rune(line+" "+word)) > width:
			lines, line = append(lines, line), word
		default:
			line += " " + word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
