package simulation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sqllock/sqllock/internal/seeds"
)

// shrinker leaves out what a plan does not need to break an invariant.
type shrinker struct{ *seeds.Shrinker[*Plan] }

func (s shrinker) shorten() {
	s.WithoutFaults(func(kept map[string]bool) *Plan {
		plan := *s.Plan
		plan.Kept = kept
		return &plan
	})
	s.withoutEvents()
	s.withoutUsers()
	s.withoutOps()
	s.withoutActs()
}

// size is how much could be left out.
func (p *Plan) size() (n int) {
	for _, u := range p.Users {
		n += 1 + len(u.ops)
		for _, o := range u.ops {
			n += len(o.acts)
		}
	}
	return n + len(p.Events)
}

func (s shrinker) withoutEvents() {
	seeds.Less(s.Plan.Events, func(kept []event) bool {
		plan := *s.Plan
		plan.Events = kept
		return s.Accept(&plan)
	})
}

func (s shrinker) withoutUsers() {
	seeds.Less(s.Plan.Users, func(kept []user) bool {
		plan := *s.Plan
		plan.Users = kept
		return s.Accept(&plan)
	})
}

func (s shrinker) withoutOps() {
	for i := range s.Plan.Users {
		seeds.Less(s.Plan.Users[i].ops, func(kept []op) bool {
			u := s.Plan.Users[i]
			u.ops = kept
			return s.acceptUser(i, u)
		})
	}
}

func (s shrinker) withoutActs() {
	for i := range s.Plan.Users {
		for j := range s.Plan.Users[i].ops {
			seeds.Less(s.Plan.Users[i].ops[j].acts, func(kept []act) bool {
				u := s.Plan.Users[i]
				u.ops = slices.Clone(u.ops)
				u.ops[j].acts = kept
				return s.acceptUser(i, u)
			})
		}
	}
}

func (s shrinker) acceptUser(i int, u user) bool {
	plan := *s.Plan
	plan.Users = slices.Clone(plan.Users)
	plan.Users[i] = u
	return s.Accept(&plan)
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
