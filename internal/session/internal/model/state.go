package model

const maxProcesses = 3

// State is one state of the server's sessions, the processes, and the statements under way between them. Time stands in it as what is
// left, so equal states are met again and the search ends.
type State struct {
	sessions  [maxProcesses][2]session // of each process: the one that it uses, and one that it has closed and the server still has
	processes [maxProcesses]process
	passed    int8      // shares that were granted since a waiter for the whole lock has had the gate
	broken    Invariant // by the step that led here; 0: none
}

// session is a session of the server, with the statement that its client has sent.
type session struct {
	live   bool
	killed bool       // it was ended, and not for its silence: its client cannot know (I1)
	has    [keys]int8 // how often it has each key, as the server counts
	place  int8       // in the queues of the server, which have one order; 0: it waits for nothing
	brief  bool       // it waits, or has waited: the server ends it after a shorter silence
	left   int8       // until the server ends it for its silence
	statement
}

const (
	a    = iota // the name that everybody wants
	b           // another one, on the same session
	gate        // of the first
	keys
	names = gate
)

// process is a process with one goroutine for each name, and one connection. One that is killed, stopped or suspended is one that
// takes no step; its clock goes on.
type process struct {
	open  bool // it has a session
	names [names]phase
	gated bool      // it knows that its session has the gate
	trust int8      // until the deadline of its session
	brief bool      // the deadline is that of a session that has waited
	due   statement // what it gives back before it sends anything else (I43, I44)
	first bool      // it waits for the whole lock, and has had the gate
}

// phase is what a process does with a name.
type phase int8

const (
	idle      phase = iota // it does not have the name, or was told that the lock is over
	claiming               // it waits for the answer, or for its next slice
	deserted               // it waits for the answer, and the caller has left
	held                   // the caller has the lock
	releasing              // the caller was told that the lock is over, and waits for its release
)

// statement is a statement under way on a session, and its answer.
type statement struct {
	kind   kind
	at     leg
	ops    [names]op   // of a run; of a keep: take, if a wait has taken its key
	gated  bool        // of a wait: the session has the gate; in the answer: it keeps it
	again  bool        // it gives back what an error, or a caller that left, may have left
	done   [names]bool // the answer
	failed bool        // the answer is an error: anything may have been done
	trust  int8        // what is left of the trust that it gives if it is confirmed; it counts from the sending (I3)
}

type kind int8

const (
	none   kind = iota
	run         // try.sql, unlock.sql, many.sql; get_lock.sql for 0 s, release_lock.sql
	wait        // one slice: wait_begin.sql, wait.sql, wait_end.sql; get_lock.sql
	forget      // forget.sql
	keep        // ping.sql, and idle.sql
)

type op int8

const (
	nothing  op = iota
	take        // if it is free
	give        // back
	exchange    // give it back, and take it again if nobody waits for it (I46)
)

// leg is how far a statement is.
type leg int8

const (
	sent     leg = iota // on its way to the server
	second              // a run: the first name is done
	trying              // a try for a share: it has the first of key and gate
	atGate              // a wait: in the queue of the gate
	atKey               // in the queue of the key
	lateGate            // its time has ended at the gate: what the block does then
	lateKey             // or at the key
	oncemore            // and then
	ran                 // the answer is on its way back
)

func (q statement) String() string {
	if q.kind != run {
		return [...]string{"", "", "a slice of a wait", "forget", "keep"}[q.kind]
	}
	names := [...]string{"nothing of", "take", "give back", "exchange"}
	return names[q.ops[a]] + " a, " + names[q.ops[b]] + " b"
}
