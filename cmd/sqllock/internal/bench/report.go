package bench

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/console"
)

// report holds all results. --json prints it.
type report struct {
	Server   string   `json:"server"`
	Kind     string   `json:"kind"`
	Duration float64  `json:"duration_seconds"`
	Results  []result `json:"results"`
}

type result struct {
	Name      string  `json:"name"`
	Count     int     `json:"count"`
	AtOnce    int     `json:"at_once"`
	Median    float64 `json:"median_seconds"`
	P99       float64 `json:"p99_seconds"`
	Mean      float64 `json:"mean_seconds"`
	PerSecond float64 `json:"per_second,omitempty"`

	title string
}

// add adds the sample of a part, which must not be empty. PerSecond is derived from the mean: calls per time spent in
// calls, times the number of calls that ran at the same time.
func (r *report) add(p part, s sample) {
	slices.Sort(s.took)
	percentile := func(n int) float64 { return s.took[(len(s.took)-1)*n/100].Seconds() }
	var all time.Duration
	for _, took := range s.took {
		all += took
	}
	one := result{
		Name: p.name, Count: len(s.took), AtOnce: s.atOnce, Median: percentile(50), P99: percentile(99),
		Mean: all.Seconds() / float64(len(s.took)), title: p.title,
	}
	if !p.paced {
		one.PerSecond = float64(s.atOnce) / one.Mean
	}
	r.Results = append(r.Results, one)
}

const widestName = len("the same, 16 names at once")

// print prints a table that is 80 columns wide.
func (r *report) print(w io.Writer) error {
	medians := make(map[string]float64)
	var b strings.Builder
	line := func(name string, numbers ...any) {
		_, _ = fmt.Fprintf(&b, "%-*s  %7s  %8s  %8s  %8s  %10s\n", append([]any{widestName, name}, numbers...)...)
	}
	_, _ = fmt.Fprintf(&b, "%s, %ss, %v for each line\n\n", console.Printable(r.Server), r.Kind, time.Duration(r.Duration*float64(time.Second)))
	line("", "COUNT", "MEDIAN", "99 %", "MEAN", "PER SECOND")
	for _, one := range r.Results {
		medians[one.Name] = one.Median
		perSecond := thousands(int64(one.PerSecond))
		switch {
		case one.PerSecond == 0:
			perSecond = console.Unknown
		case one.PerSecond < 100:
			perSecond = threeDigits(one.PerSecond)
		}
		line(one.title, thousands(int64(one.Count)), shortTime(one.Median), shortTime(one.P99), shortTime(one.Mean), perSecond)
	}
	_, _ = fmt.Fprintf(&b, "\nMEDIAN, 99 %% and MEAN are of the times that COUNT calls took, each alone.\n"+
		"PER SECOND is 1 / MEAN, or %d / MEAN of the %d names.\n", namesAtOnce, namesAtOnce)
	_, _ = fmt.Fprintf(&b, "\nBy the medians, to acquire and release a lock takes %s round trips", threeDigits(medians["pair"]/medians["round_trip"]))
	if writes, ok := medians["two_writes"]; ok {
		_, _ = fmt.Fprintf(&b, ", or\n%s times two bare writes", threeDigits(medians["pair"]/writes))
	}
	b.WriteString(".\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// bar draws a share, from 0 to 1, as a bar of up to width characters, with a precision of an eighth of a character. It
// is never empty.
func bar(share float64, width int) string {
	eighths := max(int(share*float64(width)*8+0.5), 1)
	text := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		text += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return text
}

// shortTime formats a time with three digits: 21.3 µs, 480 µs, 1.25 ms.
func shortTime(seconds float64) string {
	value, unit := seconds*1e6, "µs"
	switch {
	case seconds >= 1:
		value, unit = seconds, "s"
	case seconds >= 1e-3:
		value, unit = seconds*1e3, "ms"
	}
	return threeDigits(value) + " " + unit
}

// threeDigits formats a value with three digits, at most two of them after the decimal point.
func threeDigits(value float64) string {
	digits := 0
	for limit := 100.0; value < limit && digits < 2; limit /= 10 {
		digits++
	}
	return fmt.Sprintf("%.*f", digits, value)
}

// thousands formats a number with a comma between every three digits.
func thousands(n int64) string {
	if n < 1000 {
		return strconv.FormatInt(n, 10)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
