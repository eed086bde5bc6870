package locks

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/console"
)

// lines prints events as lines, for logs and scripts.
type lines struct {
	*console.Console
	json   bool
	silent bool // the database does not answer, and that was reported
	asides map[string]bool
}

func (l *lines) wishes() wishes { return wishes{} }
func (l *lines) redraw() error  { return nil }

// Handle does nothing: lines wish for no signals.
func (l *lines) Handle(os.Signal) error { return nil }

// Close does nothing.
func (l *lines) Close() {}

func (l *lines) show(seen reading, news []change) error {
	if l.silent {
		l.Note(errors.New("the database answers again"))
		l.silent = false
	}
	l.aside(seen.missing)
	for _, c := range news {
		if err := l.print(c, seen.now); err != nil {
			return err
		}
	}
	return nil
}

func (l *lines) print(c change, now time.Time) error {
	if l.json {
		return printJSONEvent(l.Stdout, c, now)
	}
	_, err := fmt.Fprintf(l.Stdout, "%s  %s  %s  %s\n", now.UTC().Format(time.RFC3339), console.Cell(c.called()), c.event, c.who())
	return err
}

// who describes a holder on a line.
func (e entry) who() string {
	parts := []string{console.Item(e.Owner)}
	if place := console.Where(e.Holder); place != "" {
		parts = append(parts, console.Item(place))
	}
	if e.Token != 0 {
		parts = append(parts, fmt.Sprintf("token %d", e.Token))
	}
	return strings.Join(parts, ", ")
}

// aside reports each kind of lock that could not be read, once.
func (l *lines) aside(missing []error) {
	said := make(map[string]bool)
	for _, err := range missing {
		said[err.Error()] = true
		if !l.asides[err.Error()] {
			l.Note(err)
		}
	}
	l.asides = said
}

// trouble reports once that the database does not answer. show reports when it answers again.
func (l *lines) trouble(err error) error {
	if !l.silent {
		l.Note(fmt.Errorf("%w; it is asked again", err))
	}
	l.silent = true
	return nil
}
