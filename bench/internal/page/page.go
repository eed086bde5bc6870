// Package page writes the figures of a run into a document, as tables.
package page

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sqllock/sqllock/bench/internal/lock"
	"github.com/sqllock/sqllock/bench/internal/result"
)

// The lines between which figures stand. The first one ends with their name, and " -->".
const (
	begin = "<!-- figures: "
	end   = "<!-- end of figures -->"
)

// none stands where figures are not measured yet.
const none = "Not measured yet: run `make performance`.\n"

// figures are all that a document may contain.
var figures = map[string]func(r *result.Result) string{
	"run":      run,
	"better":   better,
	"latency":  func(r *result.Result) string { return picture("latency") + latency(r) },
	"names":    func(r *result.Result) string { return pictures(r, "names") + throughput(r, "names") },
	"one name": func(r *result.Result) string { return pictures(r, "one name") + throughput(r, "one name") },
	"rates":    func(r *result.Result) string { return pictures(r, "fleet") + rates(r) },
	"fleet":    fleets,
	"waiting":  func(r *result.Result) string { return pictures(r, "waiting") + waiting(r) },
	"fault":    func(r *result.Result) string { return picture("fault") + faults(r) },
	"network":  func(r *result.Result) string { return picture("network") + network(r) },
}

// Fill returns a document with the figures of a run; nil if there is no run.
func Fill(document string, r *result.Result) (string, error) {
	var out strings.Builder
	for {
		before, rest, ok := strings.Cut(document, begin)
		out.WriteString(before)
		if !ok {
			return out.String(), nil
		}
		name, rest, ok := strings.Cut(rest, " -->\n")
		_, after, ended := strings.Cut(rest, end)
		figure := figures[name]
		if !ok || !ended || figure == nil {
			return "", fmt.Errorf("the document has no figures %q, or they do not end", name)
		}
		text := none
		if r != nil {
			text = figure(r)
		}
		fmt.Fprintf(&out, "%s%s -->\n%s%s", begin, name, text, end)
		document = after
	}
}

// table is a table in Markdown.
type table struct{ strings.Builder }

func newTable(columns ...string) *table {
	t := &table{}
	t.row(columns...)
	t.WriteString("|---|" + strings.Repeat("---:|", len(columns)-1) + "\n")
	return t
}

func (t *table) row(cells ...string) { t.WriteString("| " + strings.Join(cells, " | ") + " |\n") }

// label names a kind in a table. This library is in bold type.
func label(k lock.Kind) string {
	name := k.Name
	if k.Role == lock.Bare {
		name = "bare: " + name
	}
	if k.Role == lock.Library {
		name = "**" + name + "**"
	}
	return string(k.Engine) + ", " + name
}

// absent stands where a value was not measured.
const absent = "–"

// number writes a value with three significant digits.
func number(v float64) string {
	switch {
	case v >= 100:
		return thousands(fmt.Sprintf("%.0f", v))
	case v < 0.01:
		return strconv.FormatFloat(v, 'g', 1, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

func thousands(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// spread writes a median, and the range of the rounds if it is wide.
func spread(s result.Summary, ok bool) string {
	switch {
	case !ok:
		return absent
	case s.Max-s.Min <= 0.1*s.Median:
		return number(s.Median)
	}
	return fmt.Sprintf("%s (%s–%s)", number(s.Median), number(s.Min), number(s.Max))
}

// median writes a median.
func median(s result.Summary, ok bool) string {
	if !ok {
		return absent
	}
	return number(s.Median)
}

// bareOf returns the bare statements that a kind is compared with: for leases the UPDATE of a row.
func bareOf(k lock.Kind) (lock.Kind, bool) {
	if k.Role == lock.Bare {
		return k, true
	}
	sql := k.Engine != lock.Redis && k.Engine != lock.Etcd
	row := strings.Contains(k.Name, "table")
	for _, b := range lock.Kinds() {
		if b.Engine == k.Engine && b.Role == lock.Bare && (!sql || row == !b.Waits) {
			return b, true
		}
	}
	return lock.Kind{}, false
}
