// Package exit has the exit codes of sqllock, and errors that carry one.
package exit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The exit codes of sqllock itself; from sysexits.h where one fits.
const (
	Usage       = 64  // EX_USAGE
	Unavailable = 69  // EX_UNAVAILABLE
	Output      = 74  // EX_IOERR
	Held        = 75  // EX_TEMPFAIL
	Lost        = 76  // EX_PROTOCOL, whose meaning does not apply here
	Mind        = 78  // EX_CONFIG
	CannotRun   = 126 // this and the next two follow the shells
	NotFound    = 127
	Signal      = 128
)

// Help returns the table of exit codes for the help.
func Help() string {
	var b strings.Builder
	b.WriteString("Exit codes:\n")
	add := func(code, meaning string) {
		_, _ = fmt.Fprintf(&b, "  %-6s %s\n", code, strings.ReplaceAll(meaning, "\n", "\n"+strings.Repeat(" ", 9)))
	}
	own := func(code int, meaning string) { add(strconv.Itoa(code), meaning) }
	add("n", "the command's own, whatever it is")
	add(fmt.Sprintf("%d+n", Signal), "the command was ended by signal n, or sqllock was while no\ncommand ran")
	own(Usage, "wrong usage: an argument, a lock name or a database URL is not\n"+
		"valid; or others hold the lock with --shared while it was asked\nfor with --limit, or the other way round")
	own(Unavailable, "the database cannot be used: not reached, also within --wait,\nrefused, or without the tables")
	own(Output, "the output could not be written")
	own(Held, "somebody else holds the lock, also when --wait was over;\n--on-held names another code")
	own(Lost, "the lock was lost, or perhaps lost, while the command ran; the\ncommand was ended, unless it was over")
	own(Mind, "sqllock doctor found what is to be minded (!); if something does\nnot work (✗) it is 69")
	own(CannotRun, "the command cannot be executed")
	own(NotFound, "the command was not found")
	return b.String()
}

// Error ends the program with an exit code, and with a message unless err is nil.
type Error struct {
	Code        int
	Err         error
	Interrupted bool // by SIGINT, which sqllock then dies of
}

func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// With adds an exit code to err. It returns nil if err is nil.
func With(code int, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Code: code, Err: err}
}

// CodeOf returns the exit code for the error of a command. An error without a code comes from the flag parser.
func CodeOf(err error) int {
	var e *Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e.Code
	}
	return Usage
}

// Interrupted reports whether SIGINT ended the program, or the command that it ran.
func Interrupted(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Interrupted
}
