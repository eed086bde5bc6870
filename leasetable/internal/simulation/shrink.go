package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// Shrink returns a plan that is as short as possible and breaks an invariant that r broke, and what became of it. It takes
// at most the given time.
func Shrink(t *testing.T, plan *Plan, r Result, opener Opener, within time.Duration) (*Plan, Result) {
	t.Helper()
	s := &shrinker{t: t, opener: opener, until: time.Now().Add(within), plan: plan, result: r}
	s.invariant, _, _ = strings.Cut(r.Broken[0], " at ")
	for before := -1; before != s.size() && time.Now().Before(s.until); {
		before = s.size()
		s.withoutFaults()
		s.withoutEvents()
		s.withoutUsers()
		s.withoutOps()
		s.withoutActs()
	}
	return s.plan, s.result
}

// shrinker has the shortest plan so far.
type shrinker struct {
	t         *testing.T
	opener    Opener
	until     time.Time
	plan      *Plan
	result    Result
	invariant string
}

// size is what is to become smaller.
func (s *shrinker) size() (n int) {
	for _, u := range s.plan.Users {
		n += 1 + len(u.ops)
		for _, o := range u.ops {
			n += len(o.acts)
		}
	}
	return n + len(s.plan.Events) + len(s.result.hit)
}

// tries is how often a plan may be run until it breaks the invariant: some pauses of the engine are random.
const tries = 3

// accept makes plan the shortest one if it still breaks the invariant.
func (s *shrinker) accept(plan Plan) bool {
	for range tries {
		if time.Now().After(s.until) {
			return false
		}
		r := Run(s.t, &plan, s.opener, false)
		if slices.ContainsFunc(r.Broken, func(text string) bool { return strings.HasPrefix(text, s.invariant+" at ") }) {
			s.plan, s.result = &plan, r
			return true
		}
	}
	return false
}

// withoutFaults leaves out faults of calls: half of them, or one.
func (s *shrinker) withoutFaults() {
	ids := slices.SortedFunc(maps.Keys(s.result.hit), func(a, b callID) int { return strings.Compare(a.String(), b.String()) })
	less(ids, func(kept []callID) bool {
		plan := *s.plan
		plan.Kept = make(map[callID]bool)
		for _, id := range kept {
			plan.Kept[id] = true
		}
		return s.accept(plan)
	})
}

func (s *shrinker) withoutEvents() {
	less(s.plan.Events, func(kept []event) bool {
		plan := *s.plan
		plan.Events = kept
		return s.accept(plan)
	})
}

func (s *shrinker) withoutUsers() {
	less(s.plan.Users, func(kept []user) bool {
		plan := *s.plan
		plan.Users = kept
		return s.accept(plan)
	})
}

func (s *shrinker) withoutOps() {
	for i := range s.plan.Users {
		less(s.plan.Users[i].ops, func(kept []op) bool {
			u := s.plan.Users[i]
			u.ops = kept
			return s.acceptUser(i, u)
		})
	}
}

func (s *shrinker) withoutActs() {
	for i := range s.plan.Users {
		for j := range s.plan.Users[i].ops {
			less(s.plan.Users[i].ops[j].acts, func(kept []act) bool {
				u := s.plan.Users[i]
				u.ops = slices.Clone(u.ops)
				u.ops[j].acts = kept
				return s.acceptUser(i, u)
			})
		}
	}
}

func (s *shrinker) acceptUser(i int, u user) bool {
	plan := *s.plan
	plan.Users = slices.Clone(plan.Users)
	plan.Users[i] = u
	return s.accept(plan)
}

// less leaves out as many elements as accept allows: it tries large parts first.
func less[T any](all []T, accept func(kept []T) bool) {
	for part := len(all); part > 0; part /= 2 {
		for from := 0; from+part <= len(all); {
			kept := slices.Concat(all[:from], all[from+part:])
			if accept(kept) {
				all = kept
			} else {
				from += part
			}
		}
	}
}

// String returns the plan for people.
func (p *Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %s, TTL %v, %d processes\n", p.Seed, p.Kind.Name, p.TTL, p.Processes)
	for _, e := range p.Events {
		fmt.Fprintf(&b, "  %v\n", e)
	}
	for _, u := range p.Users {
		fmt.Fprintf(&b, "  a user of process %d:\n", u.process+1)
		for _, o := range u.ops {
			fmt.Fprintf(&b, "    after %v: %v\n", o.pause, o)
		}
	}
	return b.String()
}

func (o op) String() string {
	if o.kind == reopen {
		return opNames[o.kind]
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s%s", opNames[o.kind], holdNames[o.how], o.name)
	if o.wait > 0 {
		fmt.Fprintf(&text, " within %v", o.wait)
	}
	fmt.Fprintf(&text, ", hold for %v", o.hold)
	for _, a := range o.acts {
		text.WriteString(", " + actNames[a])
	}
	if o.minHold > 0 {
		fmt.Fprintf(&text, ", keep for %v", o.minHold)
	}
	if o.export > 0 {
		fmt.Fprintf(&text, ", export for %v", o.export)
	}
	return text.String()
}
