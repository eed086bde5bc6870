package seeds

// Simulation runs histories. A plan P is what a seed chooses.
type Simulation[P any] struct {
	Draw func(seed uint64) P              // draws the plan of a seed
	Run  func(plan P, traced bool) Result // runs the history of a plan

	// Size is how much of a plan is left to leave out, apart from faults.
	Size func(plan P) int
	// Shorten tries shorter plans, by the methods of s.
	Shorten func(s *Shrinker[P])
}

// Result is what became of a history.
type Result struct {
	Broken   []string        // the invariants that were broken, each followed by " at " and what happened
	Ops      int             // calls of users
	Schedule []string        // what happened, step by step, if it was traced
	Hit      map[string]bool // the calls that had a fault
}
