package model

// database has what statements do to the rows, and what becomes of their answers.
type database struct{ Model }

// run carries out a statement on the lock row: the column "Decides" of docs/design.md, chapter 5, then "Effect".
func (m database) run(s *State, q *statement) {
	q.at, q.result = ran, 0
	r := &s.row
	switch q.kind {
	case acquire: // FREE
		if r.lease != 0 || r.keep > 0 {
			return
		}
		if r.promised > 0 {
			s.broken = I22
		}
		m.take(s, q)
	case takeover: // the lease is the one that was read, and its row is gone
		if r.lease != q.other || s.leases[q.other].row == live && !m.Without(OnlyGoneLeases) {
			return
		}
		m.take(s, q)
	case release: // MINE
		if r.lease != q.lease || r.token != q.token && !m.Without(ReleaseComparesToken) || r.lease == 0 {
			return
		}
		if p := &s.processes[m.owner(q.lease)]; p.phase == releasing && p.token == q.token {
			p.freed = true
		}
		r.lease, q.result = 0, 1
	case move: // the token, and the old or the new lease
		if r.token != q.token || r.lease != q.lease && r.lease != q.other && !m.Without(MoveComparesLease) {
			return
		}
		r.lease, q.result = q.other, 1
	case none:
	}
}

// take is TAKE.
func (m database) take(s *State, q *statement) {
	token := s.row.token + 1
	if m.Without(TakeoverBumpsToken) && q.kind == takeover {
		token--
	}
	if token <= s.given {
		s.broken = I12
	}
	s.given = token
	s.row = row{token: token, lease: q.lease, keep: m.MinHold, promised: m.MinHold}
	q.kind, q.other, q.result = acquire, 0, token
}

// runRenewal carries out renew.
func (m database) runRenewal(s *State, l, left int8) {
	ls := &s.leases[l]
	ls.renewal.at = ran
	ls.renewal.there = ls.row == live && ls.left > 0 || m.Without(RenewalNeedsRow)
	ls.renewal.changed = ls.changed
	if !ls.renewal.there {
		return
	}
	ls.row, ls.left = live, left
	for i := range s.processes {
		if p := &s.processes[i]; p.watched == l && !m.Without(UnchangedRenewals) {
			p.watched, p.unchanged = 0, 0 // expire_unchanged compares renewals
		}
	}
}

// releaseByLease carries out release_by_lease.
func (m database) releaseByLease(s *State, l int8) {
	s.row.lease = 0
	if !s.leases[l].keeps {
		s.row.keep, s.row.promised = 0, 0
	}
	if m.Without(OrphansAreKept) {
		s.row.keep = 0
	}
}

// deliver runs the statements of a process on the lock row, gives it the answers, or loses them.
func (m database) deliver(s State, i int, yield next) {
	p := &s.processes[i]
	if n := s; p.late.kind != none {
		q := p.late
		m.run(&n, &q)
		n.processes[i].late = statement{}
		yield("a "+p.late.kind.String()+" of A by L runs late", i, p.late.lease, n)
	}
	l := p.call.lease
	switch p.call.at {
	case sent:
		n := s
		m.run(&n, &n.processes[i].call)
		yield(p.call.kind.String()+" of A by L runs", i, l, n)
	case ran:
		n := s
		n.processes[i].call = statement{}
		m.answered(n, i, p.call, yield)
	case nowhere:
		return
	}
	if s.lost < m.Lost {
		s.lost++
		m.giveUp(s, i, func(n State) { m.unanswered(n, i, p.call, yield) })
	}
}

// giveUp has a process wait no longer for its answer. A statement that has not run may run late, or never: of several that
// were given up, one may.
func (m database) giveUp(s State, i int, then func(State)) {
	p := &s.processes[i]
	call := p.call
	p.call = statement{}
	if call.at != sent {
		then(s)
		return
	}
	if p.late.kind != none {
		then(s)
	}
	p.late = call
	then(s)
}

// answered gives the answer to a statement to the process.
func (m database) answered(s State, i int, q statement, yield next) {
	p := &s.processes[i]
	switch {
	case q.kind == acquire || q.kind == takeover:
		holders(m).claimed(s, i, q, yield)
	case q.kind == release:
		holders(m).released(s, i, q, yield)
	case p.phase == held && q.result == 1:
		p.at, p.pending = p.pending, 0
		yield("A has the answer to move: its lock is on L", i, p.at, s)
	case p.phase == held:
		p.end()
		yield("A has the answer to move: its lock is lost", i, 0, s)
	}
}

// unanswered tells the process that the outcome of a statement is unknown.
func (m database) unanswered(s State, i int, q statement, yield next) {
	p := &s.processes[i]
	switch q.kind {
	case acquire, takeover:
		p.end()
		owners(m).leaveOrphan(&s, q.lease, false)
		yield("A gets no answer to "+q.kind.String()+" by L, and leaves an orphan", i, q.lease, s)
	case release:
		p.unanswered = true
		yield("A gets no answer to release by L", i, q.lease, s)
	case move:
		yield("A gets no answer to move from L", i, q.lease, s)
	case none:
	}
}
