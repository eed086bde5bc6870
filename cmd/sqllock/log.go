package main

import (
	"io"
	"log/slog"
	"strings"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/errtext"
)

// The values of --log-format.
const (
	logText = "text"
	logJSON = "json"
)

// logger returns a logger to w for messages to the user and for the warnings of Lockers.
func (m *Main) logger(w io.Writer) *slog.Logger {
	if m.logFormat == logJSON {
		return slog.New(slog.NewJSONHandler(printableJSONWriter{w}, &slog.HandlerOptions{ReplaceAttr: forScripts}))
	}
	return slog.New(slog.NewTextHandler(prefixWriter{w}, &slog.HandlerOptions{ReplaceAttr: forPeople}))
}

// forScripts prints times in UTC and durations in seconds, as the JSON of other commands does.
func forScripts(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		return slog.Float64(a.Key+"_seconds", a.Value.Duration().Seconds())
	}
	return forPeople(nil, a)
}

func forPeople(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindTime {
		return slog.Time(a.Key, a.Value.Time().UTC())
	}
	if err, ok := a.Value.Any().(error); ok {
		return slog.String(a.Key, errtext.Line(err))
	}
	return a
}

// prefixWriter puts the program's name before every line. Each Write has exactly one line.
type prefixWriter struct{ io.Writer }

// Write implements io.Writer.
func (w prefixWriter) Write(line []byte) (int, error) {
	_, err := io.WriteString(w.Writer, prefix+string(line))
	return len(line), err
}

// printableJSONWriter escapes what a terminal may obey. Each Write has exactly one line.
type printableJSONWriter struct{ io.Writer }

// Write implements io.Writer.
func (w printableJSONWriter) Write(line []byte) (int, error) {
	_, err := io.WriteString(w.Writer, printableJSON(string(line)))
	return len(line), err
}

// prefix is written before every message of the program.
const prefix = "sqllock: "

// note reports err on stderr, if it has a message.
func (m *Main) note(err error) {
	text := message(err)
	switch {
	case text == "":
	case m.logFormat == logJSON:
		m.logger(m.Stderr).Error(strings.TrimPrefix(text, prefix), slog.Int("exit_code", codeOf(err)))
	default:
		_, _ = io.WriteString(m.Stderr, text+"\n") // a failure cannot be reported anywhere else
	}
}

// warn reports on stderr something that is not a failure.
func (m *Main) warn(err error) {
	if m.logFormat == logJSON {
		m.logger(m.Stderr).Warn(strings.TrimPrefix(message(err), prefix))
		return
	}
	_, _ = io.WriteString(m.Stderr, message(err)+"\n") // see note
}

// holderAttr returns the known fields of a holder, named as in the JSON of other commands.
func holderAttr(h sqllock.Holder) slog.Attr {
	var known []any
	add := func(is bool, a slog.Attr) {
		if is {
			known = append(known, a)
		}
	}
	add(h.Owner != "", slog.String("owner", h.Owner))
	add(h.Host != "", slog.String("host", h.Host))
	add(h.PID != 0, slog.Int("pid", h.PID))
	add(h.Session != 0, slog.Int64("session", h.Session))
	add(h.Address != "", slog.String("address", h.Address))
	add(h.Token != 0, slog.Int64("token", h.Token))
	add(!h.Since.IsZero(), slog.Time("since", h.Since))
	add(!h.Until.IsZero(), slog.Time("until", h.Until))
	return slog.Group("holder", known...)
}
