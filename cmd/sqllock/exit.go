package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The exit codes of sqllock itself; from sysexits.h where one fits.
const (
	exitUsage       = 64  // EX_USAGE
	exitUnavailable = 69  // EX_UNAVAILABLE
	exitOutput      = 74  // EX_IOERR
	exitHeld        = 75  // EX_TEMPFAIL
	exitLost        = 76  // EX_PROTOCOL, whose meaning does not apply here
	exitMind        = 78  // EX_CONFIG
	exitCannotRun   = 126 // this and the next two follow the shells
	exitNotFound    = 127
	exitSignal      = 128
)

// exitCodes returns the table of exit codes for the help.
func exitCodes() string {
	var b strings.Builder
	b.WriteString("Exit codes:\n")
	add := func(code, meaning string) {
		_, _ = fmt.Fprintf(&b, "  %-6s %s\n", code, meaning)
	}
	own := func(code int, meaning string) { add(strconv.Itoa(code), meaning) }
	add("n", "the command's own, whatever it is")
	add(fmt.Sprintf("%d+n", exitSignal), "the command was ended by signal n, or sqllock was while no command ran")
	own(exitUsage, "wrong usage: an argument, a lock name or a database URL is not valid; or others hold the\n         lock with --shared while it was asked for with --limit, or the other way round")
	own(exitUnavailable, "the database cannot be used: not reached, also within --wait, refused, or without the tables")
	own(exitOutput, "the output could not be written")
	own(exitHeld, "somebody else holds the lock, also when --wait was over; --on-held names another code")
	own(exitLost, "the lock was lost while the command ran; the command was ended, unless it was over")
	own(exitMind, "sqllock doctor found what is to be minded (!); what does not work (✗) is 69")
	own(exitCannotRun, "the command cannot be executed")
	own(exitNotFound, "the command was not found")
	return b.String()
}

// exitError ends the program with an exit code, and with a message unless err is nil.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// fail adds an exit code to err. It returns nil if err is nil.
func fail(code int, err error) error {
	if err == nil {
		return nil
	}
	return &exitError{code, err}
}

// codeOf returns the exit code for the error of a command. An error without a code comes from the flag parser.
func codeOf(err error) int {
	var e *exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e.code
	}
	return exitUsage
}
