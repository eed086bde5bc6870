package console

import (
	"io"
	"log/slog"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/errtext"
)

// The values of --log-format.
const (
	LogText = "text"
	LogJSON = "json"
)

// Logger returns a logger to w for messages to the user and for the warnings of Lockers.
func (c *Console) Logger(w io.Writer) *slog.Logger {
	if c.LogFormat == LogJSON {
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

func (w prefixWriter) Write(line []byte) (int, error) {
	_, err := io.WriteString(w.Writer, prefix+string(line))
	return len(line), err
}

// printableJSONWriter escapes what a terminal may obey. Each Write has exactly one line.
type printableJSONWriter struct{ io.Writer }

func (w printableJSONWriter) Write(line []byte) (int, error) {
	_, err := io.WriteString(w.Writer, printableJSON(string(line)))
	return len(line), err
}
