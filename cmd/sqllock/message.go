package main

import (
	"errors"
	"io"
	"log/slog"
	"strings"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/errtext"
)

// prefix is written before every message of the program.
const prefix = "sqllock: "

// message returns the text of an error, on one line and safe for a terminal, after the name of the program. It is empty
// if there is nothing to report.
func message(err error) string {
	var e *exitError
	if err == nil || errors.As(err, &e) && e.err == nil {
		return ""
	}
	return prefix + printable(strings.TrimPrefix(errtext.Line(err), prefix))
}

// messageText returns a message without the name of the program.
func messageText(err error) string { return strings.TrimPrefix(message(err), prefix) }

// note reports err on stderr, if it has a message.
func (c *console) note(err error) {
	text := message(err)
	switch {
	case text == "":
	case c.LogFormat == logJSON:
		c.logger(c.Stderr).Error(messageText(err), slog.Int("exit_code", codeOf(err)))
	default:
		_, _ = io.WriteString(c.Stderr, text+"\n") // a failure cannot be reported anywhere else
	}
}

// warn reports on stderr something that is not a failure.
func (c *console) warn(err error) {
	if c.LogFormat == logJSON {
		c.logger(c.Stderr).Warn(messageText(err))
		return
	}
	_, _ = io.WriteString(c.Stderr, message(err)+"\n") // see note
}
