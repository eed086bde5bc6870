package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/errtext"
)

// The exit codes that are sqllock's own; where sysexits.h has one that fits, it is that.
const (
	exitUsage       = 64  // EX_USAGE
	exitUnavailable = 69  // EX_UNAVAILABLE
	exitOutput      = 74  // EX_IOERR
	exitHeld        = 75  // EX_TEMPFAIL
	exitLost        = 76  // free of a better meaning here
	exitMind        = 78  // EX_CONFIG
	exitCannotRun   = 126 // as shells do, and the next two
	exitNotFound    = 127
	exitSignal      = 128
)

// exitCodes is the table of exit codes for help.
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

// exitError ends the program with a code, and with a message unless err is nil.
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

// fail gives err, if there is one, an exit code.
func fail(code int, err error) error {
	if err == nil {
		return nil
	}
	return &exitError{code, err}
}

// codeOf returns the exit code for what a command returned. An error without a code is the
// flag parser's.
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

// message is what to say of an error, on one line and safe on a terminal; it is empty if there is
// nothing to say.
func message(err error) string {
	var e *exitError
	if err == nil || errors.As(err, &e) && e.err == nil {
		return ""
	}
	return prefix + printable(strings.TrimPrefix(errtext.Line(err), prefix))
}
