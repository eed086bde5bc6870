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
}

// size is how much could be left out.
func (p *Plan) size() (n int) {
	for _, u := range p.Users {
		n += 1 + len(u.ops)
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
			plan := *s.Plan
			plan.Users = slices.Clone(plan.Users)
			plan.Users[i].ops = kept
			return s.Accept(&plan)
		})
	}
}

// String returns the plan for people.
func (p *Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %s, TTL %v, %d processes, %d connections, %d locks on each\n", p.Seed, p.Kind.name, p.TTL, p.Processes, p.Sessions, p.Locks)
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
	fmt.Fprintf(&text, "%s %s", opNames[o.kind], nameOf(o.name, o.shared))
	if o.kind == ask || o.kind == terminate {
		return text.String()
	}
	if o.wait > 0 {
		fmt.Fprintf(&text, " before %v have passed%s", o.wait, map[bool]string{true: " (canceled)"}[o.cancel])
	}
	if o.within > 0 {
		fmt.Fprintf(&text, ", wait for %v at most", o.within)
	}
	fmt.Fprintf(&text, ", hold for %v", o.hold)
	return text.String()
}
