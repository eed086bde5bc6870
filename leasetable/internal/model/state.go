package model

const (
	maxProcesses = 3
	maxLeases    = 4
)

// State is one state of the database, the processes, and the statements under way between them. Time stands in it as what is
// left, so equal states are met again and the search ends. A lease is a number, and 0 is none.
type State struct {
	row       row
	leases    [maxLeases + 1]lease // by their numbers
	processes [maxProcesses]process

	given   int8 // the highest token that a holder was given, or that a forced release left
	lost    int8 // answers that were lost
	forced  int8 // forced releases
	setBack bool // the database's clock was set back

	broken Invariant // by the step that led here; 0: none
}

// row is the lock row of the only name (sqllock_lock).
type row struct {
	token, lease int8
	keep         int8 // what is left of the minimum hold (hold_until), by the database's clock
	promised     int8 // the same as the holder was promised it: no part of the row (I22)
}

// lease is a row of sqllock_lease, and what its owner knows of it.
type lease struct {
	row     rowOfLease
	left    int8 // until expires_at, by the database's clock
	changed bool // changes was counted up

	owner   ownersView
	trust   int8 // until the deadline, by the owner's clock
	orphan  bool // release_by_lease was sent for the name, and may run at any time from then on
	keeps   bool // it keeps the minimum hold
	renewal renewal
}

type rowOfLease int8

const (
	absent rowOfLease = iota
	live              // or expired, if nothing is left
	gone
)

type ownersView int8

const (
	unopened ownersView = iota
	open
	retired // takes no claims
	ended   // at its deadline, because its row was gone, or because it was not used
)

// kept reports whether the owner renews the lease.
func (l lease) kept() bool { return l.owner == open || l.owner == retired }

// renewal is the renew of a lease that is under way.
type renewal struct {
	at      leg
	trust   int8 // what is left of the trust that it gives if it is confirmed; it counts from the sending (I3)
	there   bool // the answer: the row was renewed
	changed bool // the answer: changes differs
}

type leg int8

const (
	nowhere leg = iota
	sent        // on its way to the database
	ran         // the answer is on its way back
)

// process is a process with one goroutine that wants the name. One that is killed, stopped or suspended is one that takes no
// step; its clock goes on.
type process struct {
	phase       phase
	at, pending int8 // the leases that the lock is attached to; see I27
	token       int8
	call        statement // the process waits for its answer
	late        statement // nobody waits for its answer any more, and it may still run
	unanswered  bool      // an answer to this release was lost
	missed      bool      // a verification has begun since the claim did (I20)
	freed       bool      // a statement of this release has freed the name; the process does not know it
	excused     bool      // the lock was ended by force, and no renewal since was confirmed (I20)

	watched   int8 // the lease that the process waits for, with the same renewals since it first read it (I11)
	unchanged int8 // what is left of its TTL since then, by the clock of the process
}

type phase int8

const (
	idle      phase = iota // holds nothing, or was told that its lock is over
	claiming               // waits for the answer to acquire or takeover
	held                   // the caller has the lock
	releasing              // the caller was told that the lock is over (I1), and waits for its release
)

// on reports whether the process has a lock that is attached to the lease.
func (p process) on(l int8) bool {
	return l != 0 && (p.phase == held || p.phase == releasing) && (l == p.at || l == p.pending)
}

// statement is a statement on the lock row, with what it compares.
type statement struct {
	kind   kind
	at     leg
	lease  int8 // mine; of a move: the old one
	other  int8 // of a takeover: the one that was read; of a move: the new one
	token  int8
	result int8 // the token that was granted; 1: it changed the row; 0: it did not
}

type kind int8

const (
	none kind = iota
	acquire
	takeover
	release
	move
)

func (k kind) String() string { return [...]string{"", "acquire", "takeover", "release", "move"}[k] }

// trusts reports whether a caller of the process may believe that it holds the name: by the clock of the process, which it
// reads before everything that it does.
func (m Model) trusts(s *State, i int) bool {
	p := &s.processes[i]
	has := p.phase == held || p.phase == releasing && m.Without(ToldBeforeRelease)
	if !has || s.leases[p.at].trust == 0 {
		return false
	}
	return p.pending == 0 || m.Without(BothLeasesEndTheLock) || s.leases[p.pending].trust > 0
}

// mine reports whether the lock row has the lock of the process.
func (s *State) mine(p *process) bool { return p.on(s.row.lease) && s.row.token == p.token }

// holds reports whether others cannot take the name from the process: its lease has not expired.
func (s *State) holds(p *process) bool {
	ls := &s.leases[s.row.lease]
	return s.mine(p) && ls.row == live && ls.left > 0
}
