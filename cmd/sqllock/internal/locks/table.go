package locks

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/console"
)

// printTable prints entries for people, one line each, in lines of up to width columns.
func printTable(w io.Writer, entries []entry, now time.Time, width int) error {
	waiting := slices.ContainsFunc(entries, entry.wanted)
	var cells [][]string
	line := func(waiters string, line ...string) {
		if waiting {
			line = append(line, waiters)
		}
		cells = append(cells, line)
	}
	line("WAITING", "NAME", "KIND", "TOKEN", "OWNER", "HOST/PID", "SINCE", "LEFT")
	for _, e := range entries {
		line(e.waiting(), console.Shortened(console.Cell(e.called()), 36), e.kind, number(e.Token), console.Shortened(console.Cell(e.Owner), 30),
			console.Shortened(console.Cell(console.Where(e.Holder)), 40), console.Since(e.Since, now), e.left(now))
	}
	_, err := io.WriteString(w, strings.Join(fit(cells, width), "\n")+"\n")
	return err
}

// printDetails prints all about one name for people.
func printDetails(w io.Writer, name string, entries []entry, now time.Time) error {
	tw := newTable(w)
	line := func(what, value string) {
		if value != "" && value != console.Unknown {
			_, _ = fmt.Fprintf(tw, "%s\t%s\n", what, value)
		}
	}
	line("name", console.Cell(name))
	for _, e := range entries {
		line(e.kind, e.summary())
		line("  token", number(e.Token))
		line("  owner", console.Cell(e.Owner))
		line("  host/pid", console.Cell(console.Where(e.Holder)))
		if !e.Since.IsZero() {
			line("  since", fmt.Sprintf("%s (%s ago)", e.Since.UTC().Format(time.RFC3339), console.Since(e.Since, now)))
		}
		if !e.Until.IsZero() {
			line("  until", fmt.Sprintf("%s (%s)", e.Until.UTC().Format(time.RFC3339), e.leftLonger(now)))
		}
		line("  waiting", e.waiting())
		line("  metadata", console.Cell(e.Metadata))
		line("  on server", console.Cell(e.serverName))
	}
	return tw.Flush()
}

func newTable(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }

func (e entry) summary() string {
	switch {
	case e.shared:
		return e.state + ", shared"
	case e.limit > 0:
		return fmt.Sprintf("%s, limit %d", e.state, e.limit)
	}
	return e.state
}

// waiting returns the number of waiters for a lock. The lease table records only the first waiter.
func (e entry) waiting() string {
	if !e.waiterSince.IsZero() {
		return "1+"
	}
	return number(int64(e.Waiters))
}

// left returns how long a lease lasts unless it is renewed.
func (e entry) left(now time.Time) string {
	switch {
	case e.state == stateExpired:
		return stateExpired
	case e.Until.IsZero():
		return console.Unknown
	case e.state == stateKept:
		return stateKept + " " + console.Duration(e.Until.Sub(now))
	}
	return console.Duration(e.Until.Sub(now))
}

// leftLonger returns left as part of a sentence.
func (e entry) leftLonger(now time.Time) string {
	if e.state == stateHeld {
		return e.left(now) + " left unless it is renewed"
	}
	return e.left(now)
}

func number(n int64) string {
	if n == 0 {
		return console.Unknown
	}
	return strconv.FormatInt(n, 10)
}
