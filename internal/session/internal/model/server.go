package model

// server has what statements do, and what the server does to sessions.
type server struct{ Model }

// steps are those of one session: 0 is the one that its process uses.
func (m server) steps(s State, i, j int, yield next) {
	e, n := &s.sessions[i][j], s
	if !e.live {
		return
	}
	n.drop(i, j)
	if j == 1 {
		yield("the server notices that A has closed its old session", i, n)
	} else {
		if m.Time && e.left == 0 && e.isSilent() {
			yield("the server ends the session of A for its silence", i, n)
		}
		if n.sessions[i][j].killed = true; m.Kills {
			yield("the server ends the session of A", i, n)
		}
	}
	if e.kind == none || e.at == ran {
		return
	}
	if n = s; m.Errors {
		n.leaveQueue(i, j)
		n.sessions[i][j].failed = true
		m.finish(n, i, j, "a statement of A fails", yield)
	}
	switch e.kind {
	case run:
		m.run(s, i, j, yield)
	case wait:
		m.wait(s, i, j, yield)
	case forget:
		e.has = [keys]int8{}
		m.finish(s, i, j, "forget of A runs", yield)
	case keep:
		e.brief = false
		m.finish(s, i, j, "keep of A runs", yield)
	case none:
	}
}

// isSilent reports whether no statement runs.
func (e *session) isSilent() bool { return e.kind == none || e.at == sent || e.at == ran }

// finish has the answer sent. From now on the server counts for how long the session is silent.
func (m server) finish(s State, i, j int, text string, yield next) {
	e := &s.sessions[i][j]
	e.at, e.left = ran, m.silence(e.brief)
	if j == 1 {
		e.statement, e.left = statement{}, 0 // nobody waits for the answer
	}
	yield(text, i, s)
}

// run carries out a step of a statement that does not wait (I41).
func (m server) run(s State, i, j int, yield next) {
	e, key, other := &s.sessions[i][j], a, gate // many.sql
	if m.Without(KeyBeforeGate) {
		key, other = gate, a
	}
	tries := m.Users[i].Shared && m.Gate && e.ops[a] == take && !m.Without(ShareTriesGate)
	switch {
	case tries && e.at == sent && m.admits(&s, i, j, key):
		e.has[key]++
		e.at = trying
		yield("A has one of key and gate", i, s)
		return
	case e.at == trying:
		if e.done[a] = m.admits(&s, i, j, other); e.done[a] {
			e.has[other]++
			e.has[gate]--
		} else {
			e.has[key]--
		}
		m.granted(&s, i, j)
	case e.at == second || e.ops[a] == nothing:
		m.operate(&s, i, j, b)
	case !tries:
		m.operate(&s, i, j, a)
		m.granted(&s, i, j)
	}
	if e.at == sent && e.ops[a] != nothing && e.ops[b] != nothing {
		e.at = second
		yield("the first operation of A is done", i, s)
		return
	}
	m.finish(s, i, j, "the statement of A is done", yield)
}

// operate takes a name if it is free, or gives it back.
func (m server) operate(s *State, i, j, name int) {
	e := &s.sessions[i][j]
	if op := e.ops[name]; op != take {
		if e.done[name] = e.has[name] > 0; e.done[name] {
			e.has[name]--
		}
		if op == give {
			return
		}
	}
	if e.done[name] = m.admits(s, i, j, name); e.done[name] {
		e.has[name]++
	}
}

// wait carries out a step of a slice: wait.sql, or get_lock.sql.
func (m server) wait(s State, i, j int, yield next) {
	e, n := &s.sessions[i][j], s
	o := &n.sessions[i][j]
	switch e.at {
	case sent:
		at := atGate
		if e.gated || !m.Gate {
			at = atKey
		}
		e.gated, e.brief = false, m.Gate
		s.queue(i, j, at)
		yield("A stands in the queue", i, s)
	case atGate:
		if m.admits(&s, i, j, gate) {
			n.leaveQueue(i, j)
			o.has[gate]++
			o.at = lateGate
			yield("A gets the gate when its time ends", i, n)
			n.queue(i, j, atKey)
			n.processes[i].first = n.processes[i].first || !m.Users[i].Shared && j == 0
			yield("A gets the gate", i, n)
		}
		s.leaveQueue(i, j)
		e.at = lateGate
		yield("the time of A ends at the gate", i, s)
	case atKey:
		if m.admits(&s, i, j, a) {
			n.leaveQueue(i, j)
			o.has[a]++
			if o.at = lateKey; m.Gate {
				yield("A gets the key when its time ends", i, n)
			}
			if o.done[a] = true; !m.Without(GateIsGivenBack) {
				o.has[gate] = 0
			}
			m.granted(&n, i, j)
			m.finish(n, i, j, "A gets the key", yield)
		}
		s.leaveQueue(i, j)
		if e.at = lateKey; !m.Gate { // GET_LOCK knows whether it has the lock
			m.finish(s, i, j, "the time of A ends", yield)
			return
		}
		yield("the time of A ends at the key", i, s)
	default:
		m.late(s, i, j, yield)
	}
}

// late is the exception handler of wait.sql.
func (m server) late(s State, i, j int, yield next) {
	e := &s.sessions[i][j]
	switch {
	case e.at == lateGate && !m.Without(TriesAfterTimeout) && m.admits(&s, i, j, gate):
		e.has = [keys]int8{} // it may have had the gate twice
	case e.at == lateKey && (m.Without(TriesAfterTimeout) || !m.admits(&s, i, j, a)):
		if e.gated = !m.Without(GateIsKept); !e.gated {
			e.has[gate] = 0
		}
	case e.at == lateKey && m.Without(GivesAllBack):
		e.has[a]++
		e.has[gate], e.done[a] = 0, true
	case e.at == lateKey:
		e.has, e.at = [keys]int8{}, oncemore
		s.processes[i].first = false
		yield("A gives everything back", i, s)
		return
	case e.at == oncemore && m.admits(&s, i, j, a):
		e.has[a]++
		e.done[a] = true
		m.granted(&s, i, j)
	}
	m.finish(s, i, j, "the slice of A is over", yield)
}

// granted counts a share that passes a waiter for the whole lock which has had the gate (I47).
func (m server) granted(s *State, i, j int) {
	q := &s.sessions[i][j].statement
	for k := range s.processes {
		if s.processes[k].first && m.Users[i].Shared && q.done[a] && q.ops[a] != give {
			s.passed++
		}
	}
	if s.passed > m.Passes {
		s.broken = I47
	}
}

// admits reports whether the server gives a key to a session that is in its queue, or tries for it: not past others in the queue,
// unless the session has the key already.
func (m server) admits(s *State, i, j, key int) bool {
	e := &s.sessions[i][j]
	for k := range m.Users {
		for l := range s.sessions[k] {
			o := &s.sessions[k][l]
			if e.has[key] > 0 || k == i && l == j || m.Users[i].Shared && m.Users[k].Shared {
				continue
			}
			queues := o.at == atKey && key == a || o.at == atGate && key == gate
			if o.has[key] > 0 || queues && (e.place == 0 || o.place < e.place) {
				return false
			}
		}
	}
	return true
}

func (s *State) queue(i, j int, at leg) {
	last := int8(0)
	for k := range s.sessions {
		last = max(last, s.sessions[k][0].place, s.sessions[k][1].place)
	}
	s.sessions[i][j].at, s.sessions[i][j].place = at, last+1
}

func (s *State) leaveQueue(i, j int) {
	place := s.sessions[i][j].place
	for k := range s.sessions {
		for l := range s.sessions[k] {
			if o := &s.sessions[k][l]; place > 0 && o.place > place {
				o.place--
			}
		}
	}
	s.sessions[i][j].place = 0
}

// drop ends a session on the server, and with it all that it has.
func (s *State) drop(i, j int) {
	s.leaveQueue(i, j)
	s.sessions[i][j] = session{}
}
