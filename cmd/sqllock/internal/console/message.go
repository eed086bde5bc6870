package console

import (
	"errors"
	"io"
	"log/slog"
	"strings"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/errtext"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
)

// prefix is written before every message of the program.
const prefix = "sqllock: "

// Message returns the text of an error, on one line and safe for a terminal, after the name of the program. It is empty
// if there is nothing to report.
func Message(err error) string {
	var e *exit.Error
	if err == nil || errors.As(err, &e) && e.Err == nil {
		return ""
	}
	return prefix + Printable(strings.TrimPrefix(errtext.Line(err), prefix))
}

// Text returns a message without the name of the program.
func Text(err error) string { return strings.TrimPrefix(Message(err), prefix) }

// Note reports err on stderr, if it has a message.
func (c *Console) Note(err error) {
	c.report((*slog.Logger).Error, err, slog.Int("exit_code", exit.CodeOf(err)))
}

// Warn reports on stderr something that is not a failure.
func (c *Console) Warn(err error) { c.report((*slog.Logger).Warn, err) }

func (c *Console) report(log func(*slog.Logger, string, ...any), err error, attrs ...any) {
	text := Message(err)
	switch {
	case text == "":
	case c.LogFormat == LogJSON:
		log(c.Logger(c.Stderr), Text(err), attrs...)
	default:
		_, _ = io.WriteString(c.Stderr, text+"\n") // a failure cannot be reported anywhere else
	}
}
