// Package flags has what the commands share in their flags, arguments and help texts.
package flags

import "strings"

// Help joins the parts of a help text.
func Help(parts ...string) string {
	return strings.TrimRight(strings.Join(parts, "\n\n"), "\n")
}

// Columns is how wide a help text may be. Lines that begin with a blank, which the manual page shows as they are, may
// have as many as fit beside its indentation.
const (
	Columns         = 80
	ColumnsIndented = Columns - 7
)

// SeeAlso replaces the text of the topics in the help of commands.
const SeeAlso = `How a database is named: sqllock help database.
What the exit code says: sqllock help exit-codes.`
