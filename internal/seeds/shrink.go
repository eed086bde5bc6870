package seeds

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Shrinker has the shortest plan so far that breaks an invariant.
type Shrinker[P any] struct {
	Plan   P
	Result Result

	simulation Simulation[P]
	until      time.Time
	invariant  string
}

// shrink returns a plan that is as short as possible and breaks an invariant that the plan of f broke. It takes at most
// the given time.
func (s Simulation[P]) shrink(f *failure[P], within time.Duration) P {
	k := &Shrinker[P]{Plan: f.plan, Result: f.result, simulation: s, until: time.Now().Add(within)}
	k.invariant, _, _ = strings.Cut(f.result.Broken[0], " at ")
	for before := -1; before != k.size() && time.Now().Before(k.until); {
		before = k.size()
		s.Shorten(k)
	}
	return k.Plan
}

// size is what is to become smaller.
func (k *Shrinker[P]) size() int { return k.simulation.Size(k.Plan) + len(k.Result.Hit) }

// tries is how often a plan may be run until it breaks the invariant: some pauses of the engine are random.
const tries = 3

// Accept makes plan the shortest one if it still breaks the invariant.
func (k *Shrinker[P]) Accept(plan P) bool {
	for range tries {
		if time.Now().After(k.until) {
			return false
		}
		r := k.simulation.Run(plan, false)
		if slices.ContainsFunc(r.Broken, func(text string) bool { return strings.HasPrefix(text, k.invariant+" at ") }) {
			k.Plan, k.Result = plan, r
			return true
		}
	}
	return false
}

// WithoutFaults leaves out faults of calls: half of them, or one. Having returns the plan with those that are kept.
func (k *Shrinker[P]) WithoutFaults(having func(kept map[string]bool) P) {
	Less(slices.Sorted(maps.Keys(k.Result.Hit)), func(kept []string) bool {
		calls := make(map[string]bool)
		for _, call := range kept {
			calls[call] = true
		}
		return k.Accept(having(calls))
	})
}

// Less leaves out as many elements as accept allows: it tries large parts first.
func Less[T any](all []T, accept func(kept []T) bool) {
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
