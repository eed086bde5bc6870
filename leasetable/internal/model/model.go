package model

// Times are in moments of the holder's clock. A holder trusts a lease for two moments (I3). Its row lasts for three by the same
// clock, or for two if the database's clock is as fast as the margin allows. The real margin, a sixth of the TTL, is the same in
// finer steps. The lease that an Extend moves the lock to lasts as long as the others: what counts is that it ends at another time.
const (
	trust   = 2
	ttl     = 3
	fastTTL = 2
)

// Model says what may happen in the histories that are searched, and how often.
type Model struct {
	Processes int  // at most 3
	Leases    int  // by which the first process claims, one after the other; each other process has one
	Extend    bool // the first process has one more lease, with a longer TTL, and moves its lock to it
	Tokens    int8 // claims are sent while the token is lower
	Lost      int8 // how many answers to statements on the lock row may be lost; those to renewals always may
	Forced    int8 // how many forced releases there may be
	SetBack   int8 // by how many moments the database's clock may be set back, once
	MinHold   int8 // in moments of the database's clock

	LeftOut Rule // what the protocol is to forget
}

// Without reports whether the protocol is to forget a rule.
func (m Model) Without(r Rule) bool { return m.LeftOut&r != 0 }

// last returns the number of the last lease. The first process has the first ones, and the longer one, which comes last.
func (m Model) last() int8 {
	if m.Extend {
		return m.longer()
	}
	return m.longer() - 1
}

// longer returns the lease that the first process moves its lock to.
func (m Model) longer() int8 { return int8(m.Leases + m.Processes) }

// owner returns the number of the process that a lease belongs to.
func (m Model) owner(l int8) int {
	if l == m.longer() {
		return 0
	}
	return max(0, int(l)-m.Leases)
}

// leasesOf returns the first and the last lease of a process that it claims by.
func (m Model) leasesOf(i int) (first, last int8) {
	if i == 0 {
		return 1, int8(m.Leases)
	}
	return int8(m.Leases + i), int8(m.Leases + i)
}

// fullTrust returns for how long a confirmed renewal lets the owner trust the lease.
func (m Model) fullTrust() int8 {
	if m.Without(Margin) {
		return ttl
	}
	return trust
}

// next is called with each state that may follow, and with what happened. In that text, A stands for the process with the number a,
// and L for the lease.
type next func(text string, a int, l int8, s State)

// steps calls yield with each state that may follow s.
func (m Model) steps(s State, yield next) {
	m.time(s, yield)
	for l := int8(1); l <= m.last(); l++ {
		owners{m}.renew(s, l, yield)
		owners{m}.endLease(s, l, yield)
	}
	for i := range m.Processes {
		holders{m}.claim(s, i, yield)
		holders{m}.extend(s, i, yield)
		holders{m}.release(s, i, yield)
		holders{m}.wait(s, i, yield)
		database{m}.deliver(s, i, yield)
	}
	m.force(s, yield)
}

// time lets a moment pass, or sets the database's clock back.
func (m Model) time(s State, yield next) {
	n := s
	for i := range n.leases {
		ls := &n.leases[i]
		down(&ls.left, &ls.trust, &ls.renewal.trust)
	}
	for i := range n.processes {
		down(&n.processes[i].unchanged)
	}
	if down(&n.row.keep, &n.row.promised); n != s {
		yield("a moment passes", 0, 0, n)
	}
	if n = s; m.SetBack > 0 && !s.setBack {
		n.setBack = true
		for i := range n.leases {
			if n.leases[i].row == live {
				n.leases[i].left += m.SetBack
			}
		}
		yield("the clock of the database is set back", 0, 0, n)
	}
}

func down(times ...*int8) {
	for _, t := range times {
		*t = max(0, *t-1)
	}
}

// force is ForceRelease, by somebody who has read the row.
func (m Model) force(s State, yield next) {
	l := s.row.lease
	if l == 0 || s.forced == m.Forced {
		return
	}
	i := m.owner(l)
	if p := &s.processes[i]; s.mine(p) || p.phase == claiming && p.call.result == s.row.token {
		p.excused = true
	}
	s.forced++
	s.leases[l].changed = true
	s.row = row{token: s.row.token + 1}
	s.given = s.row.token
	yield("the name is released by force: force (hung on L)", i, l, s)
}
