// Package modelcheck visits every state that a protocol can reach which is written as a small program of guarded steps. It is for
// tests, and knows no protocol.
package modelcheck

import (
	"fmt"
	"hash/maphash"
	"strings"
)

// Invariant is the number of an invariant of docs/design.md, or 0.
type Invariant int8

// Result is what a search has found.
type Result struct {
	States int
	Broken Invariant // 0: none
	Steps  []string  // the shortest history that breaks it
}

func (r Result) String() string {
	if r.Broken == 0 {
		return fmt.Sprintf("no invariant is broken in %d states", r.States)
	}
	return fmt.Sprintf("I%d is broken after %d steps:\n  %s", r.Broken, len(r.Steps), strings.Join(r.Steps, "\n  "))
}

// Search visits every state that can be reached from S's zero value, those in few steps first, until one breaks an invariant. steps
// calls yield with each state that may follow, check returns the invariant that a state breaks, and describe says what happened
// between two states. Search knows states that it has met by 64 bits of their hash. Among a million states two have the same with a
// probability below one in ten million.
func Search[S comparable](steps func(from S, yield func(S)), check func(*S) Invariant, describe func(from, to S) string) Result {
	type visit struct {
		state S
		from  int // the visit before
	}
	visits := []visit{{from: -1}}
	seed, met := maphash.MakeSeed(), map[uint64]struct{}{}
	for at := 0; at < len(visits); at++ {
		if broken := check(&visits[at].state); broken != 0 {
			var history []string
			for v := visits[at]; v.from >= 0; v = visits[v.from] {
				history = append([]string{describe(visits[v.from].state, v.state)}, history...)
			}
			return Result{len(visits), broken, history}
		}
		steps(visits[at].state, func(s S) {
			before := len(met)
			if met[maphash.Comparable(seed, s)] = struct{}{}; len(met) > before {
				visits = append(visits, visit{s, at})
			}
		})
	}
	return Result{States: len(visits)}
}
