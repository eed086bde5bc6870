package model

import (
	"fmt"
	"strings"

	"github.com/sqllock/sqllock/internal/modelcheck"
)

// Invariant is the number of an invariant of docs/design.md.
type Invariant = modelcheck.Invariant

// The invariants that the model can speak of.
const (
	I1  Invariant = 1  // no two processes trust the name at the same moment
	I3  Invariant = 3  // what a process trusts the database has, on a lease that has not expired
	I12 Invariant = 12 // each acquisition bumps the token
	I17 Invariant = 17 // a name does not hang on a lease that is renewed, unless somebody holds it, claims it or releases it
	I21 Invariant = 21 // a release that succeeds has freed the name
	I22 Invariant = 22 // a released name is kept for its minimum hold
)

// check returns the invariant that a state breaks, or 0.
func (m Model) check(s *State) Invariant {
	if s.broken != 0 {
		return s.broken
	}
	trusting := 0
	for i := range m.Processes {
		if !s.processes[i].excused && m.trusts(s, i) {
			trusting++
		}
	}
	if trusting > 1 {
		return I1
	}
	for i := range m.Processes {
		p := &s.processes[i]
		if !p.excused && m.trusts(s, i) && !s.holds(p) {
			return I3
		}
	}
	if l := s.row.lease; l != 0 && s.leases[l].kept() && !s.leases[l].orphan {
		p := &s.processes[m.owner(l)]
		if claims := p.phase == claiming && p.call.lease == l; !claims && !s.mine(p) {
			return I17
		}
	}
	return 0
}

// Search visits every state that can be reached, until one breaks an invariant.
func (m Model) Search() modelcheck.Result {
	return modelcheck.Search(func(from State, yield func(State)) {
		m.steps(from, func(_ string, _ int, _ int8, s State) {
			m.forget(&s)
			yield(s)
		})
	}, m.check, m.describe)
}

// describe says what happened between two states.
func (m Model) describe(from, to State) (text string) {
	m.steps(from, func(t string, i int, l int8, s State) {
		if m.forget(&s); s != to || text != "" {
			return
		}
		process := string(rune('A' + i))
		names := []string{"A ", process + " ", " A", " " + process}
		if l != 0 {
			first, _ := m.leasesOf(m.owner(l))
			name := fmt.Sprintf("%c%d", 'A'+m.owner(l), l-first+1)
			if l == m.longer() {
				name = "the longer lease"
			}
			names = append(names, "(hung on L)", "(hung on "+name+")", " L", " "+name)
		}
		text = strings.NewReplacer(names...).Replace(t)
	})
	return text
}

// forget makes states equal whose difference matters to nobody. A lease on which nothing hangs is as if it had just been renewed; that
// its deadline passes is a step of its own. A statement that will never find its token or its other lease again does nothing.
func (m Model) forget(s *State) {
	for i := range s.processes {
		q := &s.processes[i].late
		if q.kind == takeover && q.other != s.row.lease || (q.kind == release && !m.Without(ReleaseComparesToken) || q.kind == move) && q.token < s.row.token {
			*q = statement{}
		}
	}
	for l := int8(1); l <= m.last(); l++ {
		ls := &s.leases[l]
		switch {
		case ls.owner == unopened:
		case !ls.kept() && !s.named(l):
			*ls = lease{row: gone, owner: ended}
		case m.ages(s, l):
			if r := &ls.renewal; r.at == ran && r.there && !r.changed && r.trust <= ls.trust {
				*r = renewal{} // it tells nothing
			}
		case ls.owner == retired && !s.named(l):
			*ls = lease{row: gone, owner: ended}
		case ls.kept():
			*ls = lease{row: live, owner: ls.owner, trust: ls.trust, orphan: ls.orphan, keeps: ls.keeps}
			if ls.trust > 0 {
				ls.left, ls.trust = fastTTL, m.fullTrust()
			}
		}
	}
}

// ages reports whether it counts how old a lease is: something hangs on it, or somebody waits for its end.
func (m Model) ages(s *State, l int8) bool {
	for i := range s.processes {
		if p := &s.processes[i]; p.watched == l || p.phase == held && p.on(l) {
			return true
		}
	}
	return s.row.lease == l
}

// named reports whether the lock row, a lock or a statement under way names a lease.
func (s *State) named(l int8) bool {
	for i := range s.processes {
		p := &s.processes[i]
		if l == p.at || l == p.pending || l == p.watched || p.call.names(l) || p.late.names(l) {
			return true
		}
	}
	return l == s.row.lease
}

func (q statement) names(l int8) bool { return l == q.lease || l == q.other }
