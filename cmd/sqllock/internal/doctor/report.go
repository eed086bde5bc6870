// Package doctor checks whether a database can be trusted with locks, and says what to do where it cannot. It changes
// nothing. It tries session locks and transaction locks under names that nobody else uses.
package doctor

import (
	"cmp"
	"fmt"
	"slices"
)

// Level is the severity of a finding.
type Level string

// The levels, the best first.
const (
	OK   Level = "ok"
	Warn Level = "warn" // it needs attention, at least for some kinds of lock
	Fail Level = "fail" // leases do not work here
	None Level = "none" // of a verdict: this database has no such locks
)

// Finding is the answer to one question.
type Finding struct {
	ID     string `json:"id"`
	Level  Level  `json:"level"`
	Text   string `json:"text"`
	Advice string `json:"advice,omitempty"` // what to do; empty if there is nothing to do

	also kind // kinds of lock that depend on this finding, besides those that the check concerns
}

// Report has the findings, and for each kind of lock a verdict on whether it is safe. The ID of a verdict is the kind
// of lock.
type Report struct {
	Findings []Finding `json:"findings"`
	Verdicts []Finding `json:"verdicts"`
}

// Worst returns the level of the worst finding. Verdicts do not count.
func (r Report) Worst() Level { return worst(r.Findings).Level }

// worst returns the first of the worst findings.
func worst(findings []Finding) Finding {
	return slices.MaxFunc(append([]Finding{{Level: OK}}, findings...), func(a, b Finding) int {
		return cmp.Compare(slices.Index(levels, a.Level), slices.Index(levels, b.Level))
	})
}

var levels = []Level{None, OK, Warn, Fail}

func fine(format string, args ...any) Finding {
	return Finding{Level: OK, Text: fmt.Sprintf(format, args...)}
}

func beware(advice, format string, args ...any) Finding {
	return Finding{Level: Warn, Text: fmt.Sprintf(format, args...), Advice: advice}
}

// absent returns the verdict on a kind of lock that the database does not have.
func absent(advice, format string, args ...any) Finding {
	return Finding{Level: None, Text: fmt.Sprintf(format, args...), Advice: advice}
}

func bad(advice, format string, args ...any) Finding {
	return Finding{Level: Fail, Text: fmt.Sprintf(format, args...), Advice: advice}
}
