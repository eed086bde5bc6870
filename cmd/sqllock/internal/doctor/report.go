// Package doctor asks a database whether it can be trusted with locks, and says what to do where
// it cannot. It changes nothing; session locks and transaction locks are tried, under names that
// nobody else uses.
package doctor

import (
	"cmp"
	"fmt"
	"slices"
)

// Level says how good a finding is.
type Level string

// The levels, the best first.
const (
	OK   Level = "ok"
	Warn Level = "warn" // something is to be known or to be done, for some kinds of lock at least
	Fail Level = "fail" // leases do not work here
	None Level = "none" // of a verdict: this database has no such locks
)

// Finding is the answer to one question.
type Finding struct {
	ID     string `json:"id"`
	Level  Level  `json:"level"`
	Text   string `json:"text"`
	Advice string `json:"advice,omitempty"` // what to do; empty when all is well

	also kind // locks that depend on it, besides those that depend on every answer to the question
}

// Report is what was found, and which kinds of lock are safe: the IDs of the verdicts are those of
// the kinds.
type Report struct {
	Findings []Finding `json:"findings"`
	Verdicts []Finding `json:"verdicts"`
}

// Worst returns the level of the worst finding. A kind of lock that this database does not have is none.
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

// absent is the verdict on locks that a database does not have.
func absent(advice, format string, args ...any) Finding {
	return Finding{Level: None, Text: fmt.Sprintf(format, args...), Advice: advice}
}

func bad(advice, format string, args ...any) Finding {
	return Finding{Level: Fail, Text: fmt.Sprintf(format, args...), Advice: advice}
}
