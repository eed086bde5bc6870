package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/sqllock/sqllock"
)

// printTable prints entries for people, one line each.
func printTable(w io.Writer, entries []entry, now time.Time) error {
	waiting := slices.ContainsFunc(entries, entry.wanted)
	tw := newTable(w)
	line := func(waiters string, cells ...string) {
		if waiting {
			cells = append(cells, waiters)
		}
		_, _ = fmt.Fprintln(tw, strings.Join(cells, "\t")) // Flush returns the error
	}
	line("WAITING", "NAME", "KIND", "TOKEN", "OWNER", "HOST/PID", "SINCE", "LEFT")
	for _, e := range entries {
		line(e.waiting(), shortened(cell(e.called()), 36), e.kind, number(e.Token), shortened(cell(e.Owner), 30),
			shortened(cell(where(e.Holder)), 40), since(e.Since, now), e.left(now))
	}
	return tw.Flush()
}

// printDetails prints all about one name for people.
func printDetails(w io.Writer, name string, entries []entry, now time.Time) error {
	tw := newTable(w)
	line := func(what, value string) {
		if value != "" && value != unknown {
			_, _ = fmt.Fprintf(tw, "%s\t%s\n", what, value)
		}
	}
	line("name", cell(name))
	for _, e := range entries {
		line(e.kind, e.summary())
		line("  token", number(e.Token))
		line("  owner", cell(e.Owner))
		line("  host/pid", cell(where(e.Holder)))
		if !e.Since.IsZero() {
			line("  since", fmt.Sprintf("%s (%s ago)", e.Since.UTC().Format(time.RFC3339), since(e.Since, now)))
		}
		if !e.Until.IsZero() {
			line("  until", fmt.Sprintf("%s (%s)", e.Until.UTC().Format(time.RFC3339), e.leftLonger(now)))
		}
		line("  waiting", e.waiting())
		line("  metadata", cell(e.Metadata))
		line("  on server", cell(e.serverName))
	}
	return tw.Flush()
}

func newTable(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }

// unknown stands in a table for an unknown value.
const unknown = "-"

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
		return unknown
	case e.state == stateKept:
		return stateKept + " " + duration(e.Until.Sub(now))
	}
	return duration(e.Until.Sub(now))
}

// leftLonger returns left as part of a sentence.
func (e entry) leftLonger(now time.Time) string {
	if e.state == stateHeld {
		return e.left(now) + " left unless it is renewed"
	}
	return e.left(now)
}

func since(t, now time.Time) string {
	if t.IsZero() {
		return unknown
	}
	return duration(now.Sub(t))
}

// where returns the host and process of a holder, or its address and session.
func where(h sqllock.Holder) string {
	place, id := h.Host, int64(h.PID)
	if h.Session != 0 {
		place, id = h.Address, h.Session
	}
	if id == 0 {
		return place
	}
	return place + "/" + strconv.FormatInt(id, 10)
}

func number(n int64) string {
	if n == 0 {
		return unknown
	}
	return strconv.FormatInt(n, 10)
}

// duration rounds a duration down to its two largest units: 12s, 3m12s, 5h3m, 2d5h.
func duration(d time.Duration) string {
	const day = 24 * time.Hour
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
}

// cell returns a text of other users for a table. It quotes a text that could affect a terminal, or be taken for
// something else.
func cell(text string) string {
	switch {
	case text == "":
		return unknown
	case text == unknown, strings.HasPrefix(text, `"`), strings.TrimSpace(text) != text, printable(text) != text:
		return strconv.Quote(text)
	}
	return text
}

// quoted returns a text of other users for a sentence.
func quoted(text string) string { return shortened(strconv.Quote(text), 100) }

// printable escapes unprintable characters, which could do anything to a terminal.
func printable(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if strconv.IsPrint(r) && (r != utf8.RuneError || size > 1) {
			b.WriteString(text[:size])
		} else {
			b.WriteString(strings.Trim(strconv.Quote(text[:size]), `"`))
		}
		text = text[size:]
	}
	return b.String()
}

// shortened cuts a text to limit characters.
func shortened(text string, limit int) string {
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return text
}
