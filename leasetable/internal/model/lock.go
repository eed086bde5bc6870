package model

// holders has what a process does that wants the name, or has it.
type holders struct{ Model }

// claim begins a claim (the chart "A claim" in docs/design.md).
func (m holders) claim(s State, i int, yield next) {
	p := &s.processes[i]
	l := m.current(&s, i)
	if p.phase != idle || l == 0 || s.row.token >= m.Tokens {
		return
	}
	p.phase, p.watched, p.unchanged = claiming, 0, 0
	p.call = statement{kind: acquire, at: sent, lease: l}
	// It goes by what it reads now. When the statement runs, the name may be held, or free, by others.
	if hangs := s.row.lease; hangs != 0 {
		ls := s.leases[hangs]
		if over := ls.row != live || ls.left == 0 && m.Without(OnlyGoneLeases); !over {
			return
		}
		p.call.kind, p.call.other = takeover, hangs
	} else if s.row.keep > 0 {
		return
	}
	yield("A sends "+p.call.kind.String()+" by L", i, l, s)
}

// current returns the lease by which a process claims, or 0.
func (m holders) current(s *State, i int) int8 {
	first, last := m.leasesOf(i)
	for l := first; l <= last; l++ {
		switch ls := s.leases[l]; {
		case ls.owner == open && ls.trust > 0, ls.owner == unopened && m.Without(LeaseFirst):
			return l
		}
	}
	return 0
}

// claimed gives a process the answer to its claim.
func (m holders) claimed(s State, i int, q statement, yield next) {
	p, ls := &s.processes[i], &s.leases[q.lease]
	switch {
	case ls.owner == unopened: // only if a rule is left out
	case q.result == 0:
		p.end()
		yield("A has the answer to its claim by L: the name is held", i, q.lease, s)
	case ls.trust == 0 || p.missed: // no lock from a late answer (I4)
		p.end()
		owners(m).leaveOrphan(&s, q.lease, false)
		yield("A has the answer to its claim by L too late, and gives the name back", i, q.lease, s)
	default:
		p.phase, p.at, p.token, p.missed = held, q.lease, q.result, false
		yield("A holds the name by L", i, q.lease, s)
	}
}

// extend moves a lock to the longer lease. While the outcome is unknown the lock is on both (I27).
func (m holders) extend(s State, i int, yield next) {
	p := &s.processes[i]
	long := m.longer()
	if i != 0 || !m.Extend || !m.trusts(&s, i) || p.phase != held || p.at == long || p.call.kind != none {
		return
	}
	if p.pending == 0 {
		if s.leases[long].owner != open || s.leases[long].trust == 0 {
			return
		}
		p.pending = long
	}
	p.call = statement{kind: move, at: sent, lease: p.at, other: long, token: p.token}
	yield("A extends: it sends move to L", i, long, s)
}

// release begins a release, sends one again that was not answered, or leaves it to the background. A move whose answer is
// awaited is not waited for.
func (m holders) release(s State, i int, yield next) {
	p := &s.processes[i]
	switch {
	case p.phase == held && m.trusts(&s, i):
		database(m).giveUp(s, i, func(n State) {
			n.processes[i].phase = releasing
			m.sendRelease(n, i, p.at, "A releases: it sends release by L", yield)
		})
	case p.phase == releasing && p.call.kind == none:
		m.sendRelease(s, i, p.at, "A sends release by L again", yield)
		m.unconfirmed(s, i, "A gives up its release by L, which is not confirmed", yield)
	}
}

func (m holders) sendRelease(s State, i int, l int8, text string, yield next) {
	p := &s.processes[i]
	p.call = statement{kind: release, at: sent, lease: l, token: p.token}
	yield(text, i, l, s)
}

// released gives a process the answer to its release.
func (m holders) released(s State, i int, q statement, yield next) {
	p := &s.processes[i]
	switch {
	case q.result == 0 && q.lease == p.at && p.pending != 0 && !m.Without(ReleaseOnBothLeases):
		m.sendRelease(s, i, p.pending, "A has the answer that nothing was freed, and sends release by L", yield)
	case q.result == 0 && p.unanswered && m.overdue(&s, p): // ErrExpired: it is not known who has freed it
		if p.pending != 0 {
			owners(m).leaveOrphan(&s, p.pending, true)
		}
		p.end()
		yield("A has the answer that nothing was freed by L, and its deadline, or that of its other lease, has passed", i, q.lease, s)
	case q.result == 0 && !p.unanswered:
		p.end()
		yield("A has the answer that nothing was freed by L: its lock was lost", i, q.lease, s)
	default: // Release returns nil
		if !p.freed && !p.excused {
			s.broken = I21
		}
		p.end()
		yield("A has released the name by L", i, q.lease, s)
	}
}

// overdue reports whether a lease that a released lock was on is over.
func (m holders) overdue(s *State, p *process) bool {
	return s.leases[p.at].trust == 0 && !m.Without(ReleaseKnowsItsEnd) ||
		p.pending != 0 && s.leases[p.pending].trust == 0 && !m.Without(ReleaseKnowsBothEnds)
}

// unconfirmed ends a release whose outcome is unknown.
func (m holders) unconfirmed(s State, i int, text string, yield next) {
	p := &s.processes[i]
	at := p.at
	told := p.pending != 0 && (!s.leases[at].kept() || !s.leases[p.pending].kept()) // one lease has ended, and told its locks
	if !told || !m.Without(ReleaseKeepsPosition) {
		owners(m).leaveOrphans(&s, p)
	}
	p.end()
	yield(text, i, at, s)
}

// wait is what others do with the name: a waiter reads it, and the background releases an orphan.
func (m holders) wait(s State, i int, yield next) {
	n, l := s, s.row.lease
	if l == 0 {
		return
	}
	if p := &n.processes[i]; m.SetBack > 0 && p.phase == idle && p.watched == 0 && s.leases[l].row == live && m.owner(l) != i {
		p.watched, p.unchanged = l, fastTTL // the waiter's clock is fast
		if m.Without(UnchangedForTTL) {
			p.unchanged--
		}
		yield("A reads that L holds the name", i, l, n)
	}
	if n = s; s.leases[l].orphan && m.owner(l) == i {
		database(m).releaseByLease(&n, l)
		yield("release_by_lease of L runs", i, l, n)
	}
}
