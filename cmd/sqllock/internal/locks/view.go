package locks

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/console"
)

// view is the content of the screen.
type view struct {
	seen    reading
	now     time.Time     // by the database's clock
	failure error         // why there is no newer reading
	late    time.Duration // how old seen may become before something is wrong
	lately  []happening   // the newest first
}

// rows lays out the view: a summary, the problems, the table, and the latest events.
func (v view) rows(width, height int) []console.Row {
	rows := []console.Row{{Text: v.summary(), Style: console.Bold}}
	for _, err := range v.wrong() {
		rows = append(rows, console.Row{Text: console.Text(err), Style: console.Red})
	}
	lately := v.lately[:min(len(v.lately), max(height/3, 1))]
	room := height - len(rows) - 1 // minus an empty row
	if len(lately) > 0 {
		room -= len(lately) + 1
	}
	rows = append(append(rows, console.Row{}), v.table(width, room)...)
	if len(lately) > 0 {
		rows = append(append(rows, console.Row{}), happened(lately, width)...)
	}
	for i := range rows {
		rows[i].Text = console.Shortened(rows[i].Text, width)
	}
	return rows[:min(len(rows), height)]
}

// wrong returns the problems that the user must know to read the table.
func (v view) wrong() []error {
	ago := v.now.Sub(v.seen.now)
	switch {
	case v.failure != nil:
		return []error{fmt.Errorf("as it was %s ago, and asked for again: %w", console.Duration(ago), v.failure)}
	case ago > v.late:
		return []error{fmt.Errorf("as it was %s ago: the database has not answered since", console.Duration(ago))}
	}
	return v.seen.missing
}

func (v view) summary() string {
	var parts []string
	count := func(what string, is func(entry) bool) {
		n := 0
		for _, e := range v.seen.entries {
			if is(e) {
				n++
			}
		}
		if n > 0 || what == stateHeld {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	count(stateHeld, func(e entry) bool { return e.state == stateHeld })
	count(eventWaitedFor, entry.wanted)
	count(eventExpiring, func(e entry) bool { return e.soon(v.now) })
	count(stateExpired, func(e entry) bool { return e.state == stateExpired })
	count(stateKept, func(e entry) bool { return e.state == stateKept })
	return fmt.Sprintf("sqllock watch %s  %s  q quits", v.now.UTC().Format("15:04:05 UTC"), strings.Join(parts, ", "))
}

// table returns one row for each holder, as many as fit.
func (v view) table(width, room int) []console.Row {
	entries := slices.DeleteFunc(slices.Clone(v.seen.entries), func(e entry) bool { return e.state == stateFree })
	switch {
	case len(entries) == 0 && len(v.seen.missing) > 0:
		return []console.Row{{Text: "nobody holds a lock of those that can be shown", Style: console.Plain}}
	case len(entries) == 0:
		return []console.Row{{Text: "nobody holds a lock", Style: console.Plain}}
	}
	hidden := 0
	if fits := max(room-1, 1); len(entries) > fits { // one row is the head
		hidden = len(entries) - max(fits-1, 0)
		entries = entries[:len(entries)-hidden]
	}
	cells := [][]string{{"NAME", "KIND", "OWNER", "HOST/PID", "SINCE", "LEFT"}}
	styles := []console.Style{console.Bold}
	waiting := slices.ContainsFunc(entries, entry.wanted)
	if waiting {
		cells[0] = append(cells[0], "WAITING")
	}
	for _, e := range entries {
		line := []string{console.Cell(e.called()), e.kind, console.Cell(e.Owner), console.Cell(console.Where(e.Holder)), console.Since(e.Since, v.now), e.left(v.now)}
		how := console.Plain
		switch {
		case e.state == stateExpired:
			how = console.Red
		case e.soon(v.now):
			how = console.Red
			line[5] += " !"
		case e.wanted():
			how = console.Yellow
		}
		if waiting {
			line = append(line, e.waiting())
		}
		cells, styles = append(cells, line), append(styles, how)
	}
	rows := make([]console.Row, 0, len(cells)+1)
	for i, text := range fit(cells, width) {
		rows = append(rows, console.Row{Text: text, Style: styles[i]})
	}
	if hidden > 0 {
		rows = append(rows, console.Row{Text: fmt.Sprintf("… and %d more; with a PREFIX there are fewer", hidden), Style: console.Bold})
	}
	return rows
}

// happened returns one row for each event.
func happened(lately []happening, width int) (rows []console.Row) {
	var cells [][]string
	for _, e := range lately {
		cells = append(cells, []string{e.UTC().Format("15:04:05"), e.event, console.Cell(e.called()), console.Cell(e.Owner), console.Cell(console.Where(e.Holder))})
	}
	for i, text := range fit(cells, width) {
		how := console.Plain
		switch lately[i].event {
		case eventExpiring, eventExpired, eventTakenOver, eventTakenAway:
			how = console.Red
		}
		rows = append(rows, console.Row{Text: text, Style: how})
	}
	return rows
}

// fit aligns cells in columns. It shortens the widest columns until the lines fit into width.
func fit(cells [][]string, width int) []string {
	const gap, least = 2, 8
	widths := make([]int, len(cells[0]))
	total := gap * (len(widths) - 1)
	for column := range widths {
		for _, line := range cells {
			widths[column] = max(widths[column], utf8.RuneCountInString(line[column]))
		}
		total += widths[column]
	}
	for ; total > width && slices.Max(widths) > least; total-- {
		widths[slices.Index(widths, slices.Max(widths))]--
	}
	texts := make([]string, 0, len(cells))
	for _, line := range cells {
		var b strings.Builder
		for column, text := range line {
			_, _ = fmt.Fprintf(&b, "%-*s", widths[column]+gap, console.Shortened(text, widths[column]))
		}
		texts = append(texts, strings.TrimRight(b.String(), " "))
	}
	return texts
}
