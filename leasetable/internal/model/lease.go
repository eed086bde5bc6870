package model

// owners has what the owners of leases do.
type owners struct{ Model }

// renew opens a lease, or sends a renewal of it, runs it, and gives the owner the answer or loses it.
func (m owners) renew(s State, l int8, yield next) {
	i, n, full := m.owner(l), s, m.fullTrust()
	switch ls := &n.leases[l]; {
	case ls.owner == unopened && m.wants(&s, i, l):
		ls.owner, ls.row, ls.left, ls.trust = open, live, fastTTL, full
		yield("A opens L: open_lease", i, l, n)
	case ls.renewal.at == sent:
		for _, left := range []int8{fastTTL, ttl} {
			n = s
			database(m).runRenewal(&n, l, left)
			yield("renew of L runs", i, l, n)
		}
	case ls.renewal.at == ran:
		m.renewed(n, i, l, yield)
	case ls.kept() && ls.trust > 0 && ls.trust <= full/2 && !m.renews(&s, i): // it is due
		ls.renewal = renewal{at: sent, trust: full}
		yield("A sends renew of L", i, l, n)
	}
	if s.leases[l].renewal.at != nowhere {
		n = s
		n.leases[l].renewal = renewal{}
		yield("A gets no answer to renew of L", i, l, n)
	}
}

// renews reports whether a renewal of the process is under way: all its leases share one connection.
func (m owners) renews(s *State, i int) bool {
	for l := int8(1); l <= m.last(); l++ {
		if m.owner(l) == i && s.leases[l].renewal.at != nowhere {
			return true
		}
	}
	return false
}

// wants reports whether a process opens a lease: the next one when the one before takes no claims, the long one to extend a lock.
func (m owners) wants(s *State, i int, l int8) bool {
	p := &s.processes[i]
	if l == m.longer() {
		return p.phase == held && m.trusts(s, i)
	}
	first, _ := m.leasesOf(i)
	return (p.phase == idle || m.Without(LeaseFirst)) && (l == first || s.leases[l-1].owner > open)
}

// renewed gives the owner the answer to renew.
func (m owners) renewed(s State, i int, l int8, yield next) {
	ls := &s.leases[l]
	got := ls.renewal
	ls.renewal = renewal{}
	if !got.there && !m.Without(LostLeaseIsTold) {
		m.finish(s, i, l, "A has the answer to renew of L: the row is gone", yield)
		return
	}
	if m.Without(DeadlineFromSending) {
		got.trust = m.fullTrust()
	}
	ls.trust = max(ls.trust, got.trust)
	if got.changed {
		m.verify(&s, i, l)
	}
	yield("A has the answer to renew of L", i, l, s)
}

// verify is still_held, which a renewal begins that tells of a change (I20). It runs and is answered at once.
func (m owners) verify(s *State, i int, l int8) {
	p := &s.processes[i]
	p.excused = p.excused && p.phase == releasing
	switch {
	case m.Without(ForceIsTold):
	case p.on(l) && p.phase == held && !s.mine(p):
		p.end()
	case p.phase == claiming:
		p.missed = true
	}
}

// endLease ends a lease for its owner, and deletes its row.
func (m owners) endLease(s State, l int8, yield next) {
	i, ls := m.owner(l), s.leases[l]
	if ls.kept() && ls.trust == 0 {
		m.finish(s, i, l, "A finds that the deadline of L has passed", yield)
	}
	n := s
	if ls.kept() && ls.trust > 0 && !m.ages(&s, l) {
		n.leases[l].trust, n.leases[l].left = 0, 0
		yield("the deadline of L passes, on which nothing hangs", i, l, n)
	}
	if ls.row != live {
		return
	}
	n = s
	n.leases[l].row, n.leases[l].left = gone, 0
	if ls.left == 0 {
		yield("expire or end_lease of L runs", i, l, n)
	}
	for w := range s.processes {
		if p := s.processes[w]; p.watched == l && p.unchanged == 0 {
			yield("expire_unchanged of L runs, for A", w, l, n)
		}
	}
}

// finish ends a lease for its owner, who tells its locks. A lock that may be on two leases ends with the first (I27).
func (m owners) finish(s State, i int, l int8, text string, yield next) {
	s.leases[l].stop()
	p := &s.processes[i]
	if !p.on(l) {
		yield(text, i, l, s)
		return
	}
	if p.pending != 0 && m.Without(BothLeasesEndTheLock) && p.phase == held {
		if l == p.at {
			p.at = p.pending
		}
		p.pending = 0
		yield(text, i, l, s)
		return
	}
	if p.pending != 0 && p.phase == releasing {
		yield(text, i, l, s) // the release goes on, and frees the name on the other lease
		return
	}
	database(m).giveUp(s, i, func(n State) {
		q := &n.processes[i]
		if q.pending != 0 && q.phase == held { // its move is not answered: lease/move.go, settle
			m.leaveOrphans(&n, q)
		}
		q.end()
		yield(text, i, l, n)
	})
}

// stop ends a lease for its owner. How long its row lasts matters to nobody from then on, so it may expire at once. A renewal under
// way, and release_by_lease, could only put off that the name is free.
func (l *lease) stop() { *l = lease{row: l.row, owner: ended} }

// end ends the lock or the claim of a process. A statement that was given up may still run.
func (p *process) end() {
	*p = process{late: p.late, watched: p.watched, unchanged: p.unchanged}
}

// leaveOrphan has release_by_lease sent for what a statement without an answer may have left (I17). The lease takes no more
// claims (I18).
func (m owners) leaveOrphan(s *State, l int8, keep bool) {
	ls := &s.leases[l]
	if !ls.kept() {
		return // the end of the lease frees the name
	}
	if !m.Without(UnknownIsOrphan) {
		ls.orphan, ls.keeps = true, keep && m.MinHold > 0
	}
	if !m.Without(OrphanRetires) {
		ls.owner = retired
	}
}

// leaveOrphans leaves orphans for a lock on all leases that it may be on.
func (m owners) leaveOrphans(s *State, p *process) {
	m.leaveOrphan(s, p.at, true)
	if p.pending != 0 && !m.Without(ReleaseOnBothLeases) {
		m.leaveOrphan(s, p.pending, true)
	}
}
