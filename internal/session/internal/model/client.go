package model

// clients has what processes do: internal/session.
type clients struct{ Model }

func (m clients) steps(s State, i int, yield next) {
	p, e, n := &s.processes[i], &s.sessions[i][0], s
	if !p.open {
		p.open, p.trust, *e = true, m.fullTrust(), session{live: true, left: m.silence(false)}
		yield("A opens a session", i, s)
		return
	}
	m.end(&n, i)
	yield("A ends its session: it is not needed, or an answer is missing, or the deadline has passed", i, n)
	if n = s; m.Without(ToldBeforeClosed) && e.live {
		n.drop(i, 0)
		yield("A closes its session, and has told nobody", i, n)
	}
	switch {
	case !e.live || m.Time && p.trust == 0:
	case e.kind == none:
		m.send(s, i, yield)
	case e.at == ran:
		m.answered(s, i, yield)
		if n = s; m.Without(UncertainEnds) {
			n.sessions[i][0].statement, n.processes[i].names = statement{}, [names]phase{}
			yield("A has no answer, and goes on with its session", i, n)
		}
	}
	for name, phase := range p.names {
		if n = s; m.Leaves && phase == claiming && e.kind != none {
			n.processes[i].names[name] = deserted
			yield("a caller of A leaves", i, n)
		}
	}
}

// end ends a session (I42): its locks are told, and then it is closed. The server may notice that later.
func (m clients) end(s *State, i int) {
	e, old, p := &s.sessions[i][0], &s.sessions[i][1], &s.processes[i]
	if m.Lingers && e.live && !old.live {
		*old = *e
		if old.left, old.trust = 0, 0; old.at == ran {
			old.statement = statement{}
		}
		*e = session{}
	}
	s.drop(i, 0)
	had := p.names
	if *p = (process{}); m.Without(LocksEndWithSession) {
		p.names = had
	}
}

// send sends the next statement.
func (m clients) send(s State, i int, yield next) {
	p, u := &s.processes[i], m.Users[i]
	if q := p.due; q.kind != none {
		p.due, p.gated = statement{}, p.gated && (q.kind != forget || m.Without(ForgetsGate))
		m.sends(s, i, q, yield)
		return
	}
	n := s
	if m.Time && (p.brief || p.trust < m.fullTrust()) && (p.names[a] == held || p.names[b] == held) {
		n.processes[i].brief = p.brief && !m.Without(KeepIsAwaited)
		m.sends(n, i, statement{kind: keep}, yield)
	}
	if p.names[a] <= claiming && (u.Waits || m.Without(WaitHoldsNothing)) {
		m.slice(s, i, yield)
	}
	if n = s; u.Waits && p.names[a] == held && !u.Shared {
		n.processes[i].names[a] = releasing
		m.sends(n, i, statement{kind: run, ops: [names]op{exchange}}, yield)
	}
	for which := 1; which < 1<<m.Names; which++ { // one name or both
		n = s
		q := statement{kind: run}
		for name := range p.names {
			switch phase := &n.processes[i].names[name]; {
			case which>>name&1 == 0:
			case *phase == held:
				*phase, q.ops[name] = releasing, give
			case *phase == idle && !u.Waits:
				*phase, q.ops[name] = claiming, take
			}
		}
		if q.ops != [names]op{} {
			m.sends(n, i, q, yield)
		}
	}
}

func (m clients) sends(s State, i int, q statement, yield next) {
	q.trust = m.fullTrust()
	s.sessions[i][0].statement = q
	yield("A sends", i, s)
}

// slice begins or goes on with a wait, on a session that holds nothing, so its trust begins anew. Or the caller leaves.
func (m clients) slice(s State, i int, yield next) {
	p, n := &s.processes[i], s
	if p.names[a] == claiming && m.Leaves {
		m.took(&n.processes[i], false, deserted)
		yield("the caller of A leaves between two slices", i, n)
	}
	p.names[a], p.trust, p.brief = claiming, m.fullTrust(), false
	m.sends(s, i, statement{kind: wait, gated: p.gated}, yield)
}

// answered gives a process the answer to its statement.
func (m clients) answered(s State, i int, yield next) {
	p, e := &s.processes[i], &s.sessions[i][0]
	q := e.statement
	e.statement = statement{}
	if q.kind == wait && !q.failed {
		p.gated = q.gated
	}
	switch {
	case q.failed:
		m.refused(&s, i, q)
		yield("A has an error for an answer", i, s)
		return
	case q.kind == keep:
		p.brief = false
	case q.kind == wait && q.done[a] && m.Gate:
		if m.Time && q.trust < m.fullTrust() { // the server is to keep the session for its TTL before the lock is given
			e.statement = statement{kind: keep, ops: [names]op{take}, trust: q.trust}
			yield("A sends", i, s)
			return
		}
		p.brief = !m.Without(WaiterIsTrustedBriefly)
	}
	if p.trust = q.trust; m.Without(DeadlineFromSending) {
		p.trust = m.fullTrust()
	}
	if p.brief {
		p.trust = max(0, p.trust-1)
	}
	switch {
	case q.kind == run && !q.again:
		m.settle(p, q)
	case q.kind == wait:
		m.took(p, q.done[a], p.names[a])
	case q.kind == keep && q.ops[a] == take:
		m.took(p, true, p.names[a])
	}
	yield("A has its answer", i, s)
}

// settle decides what becomes of each name of a statement (I44).
func (m clients) settle(p *process, q statement) {
	for name, op := range q.ops {
		took := op != give && q.done[name]
		switch {
		case op == nothing:
		case took && p.names[name] != deserted:
			p.names[name] = held
		default:
			if took && !m.Without(LeaverGivesBack) {
				p.giveBack(name)
			}
			p.names[name] = idle
		}
	}
}

func (p *process) giveBack(name int) {
	p.due.kind, p.due.again, p.due.ops[name] = run, true, give
}

// took decides what becomes of a wait after a slice, whose caller may have left (I44).
func (m clients) took(p *process, took bool, now phase) {
	switch {
	case now == deserted && m.Without(LeaverForgets):
		p.names[a] = idle
	case now == deserted:
		p.names[a], p.due = idle, statement{kind: forget}
	case took:
		p.names[a] = held
	}
}

// refused gives a process the server's error instead of an answer (I43).
func (m clients) refused(s *State, i int, q statement) {
	p := &s.processes[i]
	switch {
	case q.kind == forget || q.again:
		m.end(s, i)
	case q.kind == keep && q.ops[a] == nothing: // it is sent again
	case q.kind != run:
		p.names[a] = idle
		if !m.Without(ErrorForgets) {
			p.due.kind = forget
		}
	default:
		for name, op := range q.ops {
			if op == nothing {
				continue
			}
			p.names[name] = idle
			if !m.Without(ErrorGivesBack) {
				p.giveBack(name)
			}
		}
		if m.Without(RecoversItsKeys) {
			p.due = statement{kind: forget}
		}
	}
}
