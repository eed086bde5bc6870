package model

import (
	"strings"

	"github.com/sqllock/sqllock/internal/modelcheck"
)

// Invariant is the number of an invariant of docs/design.md.
type Invariant = modelcheck.Invariant

// The invariants that the model can speak of.
const (
	I1  Invariant = 1  // no two processes trust the name at the same moment, unless both share it
	I3  Invariant = 3  // what a process trusts its session has, and the server has not ended that for its silence
	I40 Invariant = 40 // a session has a key at most once
	I43 Invariant = 43 // a session that is used has what its client knows of, and nothing else
	I47 Invariant = 47 // shares do not pass a waiter for the whole lock that has had the gate, but for Passes of them
)

// User is what a process does with the name.
type User struct {
	Shared bool // it wants a share
	Waits  bool // it waits, on a dedicated session; otherwise it tries, on a shared session
}

// Model says what may happen in the histories that are searched.
type Model struct {
	Users   []User // the processes: at most 3
	Names   int    // 2: those that try want another name, too, on the same session
	Gate    bool   // it is PostgreSQL; otherwise MySQL or MariaDB, where nobody shares
	Time    bool   // sessions have deadlines; otherwise the server ends none for its silence
	Errors  bool   // the server may answer with an error
	Kills   bool   // the server may end a session at any time
	Leaves  bool   // callers may leave
	Lingers bool   // the server may have a session, and run its statement, long after its client has closed it
	Passes  int8   // how many shares may pass a waiter that has had the gate

	LeftOut Rule // what the protocol is to forget
}

// Without reports whether the protocol is to forget a rule.
func (m Model) Without(r Rule) bool { return m.LeftOut&r != 0 }

// fullTrust returns for how long a confirmed statement lets the client trust its session, in moments of its clock: for two, and for
// one if it has waited. The server ends it no sooner than after such a silence, if its clock is as fast as the margin allows. The real
// margin, a sixth of the TTL, is the same in finer steps.
func (m Model) fullTrust() int8 {
	if m.Time && m.Without(Margin) {
		return 3
	}
	return m.silence(false)
}

// silence returns how long the server keeps a silent session.
func (m Model) silence(brief bool) int8 {
	switch {
	case !m.Time:
		return 0
	case brief:
		return 1
	}
	return 2
}

// next is called with each state that may follow, and with what happened. In that text, A stands for the process with the number i.
type next func(text string, i int, s State)

// steps calls yield with each state that may follow s.
func (m Model) steps(s State, yield next) {
	n := s
	for i := range n.processes {
		e, p := &n.sessions[i][0], &n.processes[i]
		if e.trust, p.trust = max(0, e.trust-1), max(0, p.trust-1); e.isSilent() {
			e.left = max(0, e.left-1)
		}
	}
	if n != s {
		yield("a moment passes", 0, n)
	}
	for i := range m.Users {
		clients{m}.steps(s, i, yield)
		server{m}.steps(s, i, 0, yield)
		server{m}.steps(s, i, 1, yield)
	}
}

// trusts reports whether a caller of the process may believe that it holds a name.
func (m Model) trusts(s *State, i, name int) bool {
	p := &s.processes[i]
	has := p.names[name] == held || p.names[name] == releasing && m.Without(ToldBeforeRelease)
	return has && (!m.Time || p.trust > 0) && !s.sessions[i][0].killed
}

// check returns the invariant that a state breaks, or 0.
func (m Model) check(s *State) Invariant {
	for i, u := range m.Users {
		p, e := &s.processes[i], &s.sessions[i][0]
		for name := range names {
			if m.trusts(s, i, name) && e.has[name] == 0 {
				return I3
			}
			for k, other := range m.Users[:i] {
				if both := m.trusts(s, i, name) && m.trusts(s, k, name); both && (!u.Shared || !other.Shared) {
					return I1
				}
			}
		}
		for key, has := range e.has {
			switch {
			case has > 1:
				return I40
			case !e.live || e.kind != none || p.due.kind != none:
			case key == gate && p.gated != (has > 0), key != gate && p.names[key] != held && has > 0:
				return I43
			}
		}
	}
	return s.broken
}

// forget makes states equal whose difference matters to nobody. A session that holds nothing is as if it had just been confirmed, and
// one that was closed, too, is as if it were gone.
func (m Model) forget(s *State) {
	passes := s.passed
	s.passed = 0
	for i := range s.processes {
		p, e, old := &s.processes[i], &s.sessions[i][0], &s.sessions[i][1]
		if p.first = p.first && e.live && p.names[a] == claiming; p.first {
			s.passed = passes
		}
		if e.kind == none && p.names[a] <= claiming && p.names[b] <= claiming && e.live {
			p.trust, p.brief, e.brief, e.left = m.fullTrust(), false, false, m.silence(false)
		}
		if old.kind == none && old.has == ([keys]int8{}) {
			*old = session{}
		}
	}
}

// Search visits every state that can be reached, until one breaks an invariant.
func (m Model) Search() modelcheck.Result {
	return modelcheck.Search(func(from State, yield func(State)) {
		m.steps(from, func(_ string, _ int, s State) {
			m.forget(&s)
			yield(s)
		})
	}, m.check, m.describe)
}

// describe says what happened between two states.
func (m Model) describe(from, to State) (text string) {
	m.steps(from, func(t string, i int, s State) {
		if m.forget(&s); s != to || text != "" {
			return
		}
		process := string(rune('A' + i))
		text = strings.NewReplacer("A ", process+" ", " A", " "+process).Replace(t)
		if t == "A sends" {
			text = process + " sends " + to.sessions[i][0].String()
		}
	})
	return text
}
