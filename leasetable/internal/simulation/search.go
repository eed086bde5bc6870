package simulation

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Search is a run of many histories, until one breaks an invariant.
type Search struct {
	First, Count uint64        // the seeds
	Within       time.Duration // no history begins later than that; 0: no limit

	Done   atomic.Int64
	Ops    atomic.Int64
	Failed *Plan // the plan of the lowest seed that broke an invariant, of those that were run
	Result Result

	next atomic.Uint64
	mu   sync.Mutex // guards Failed and Result
}

// Run runs the histories, on all processors.
func (s *Search) Run(t *testing.T, opener Opener) {
	t.Helper()
	began := time.Now()
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for s.more(began) {
				n := s.next.Add(1)
				if n > s.Count {
					return
				}
				s.history(t, NewPlan(s.First+n-1), opener)
			}
		})
	}
	workers.Wait()
}

// more reports whether another history begins.
func (s *Search) more(began time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Failed == nil && (s.Within == 0 || time.Since(began) < s.Within)
}

func (s *Search) history(t *testing.T, plan *Plan, opener Opener) {
	t.Helper()
	r := Run(t, plan, opener, false)
	s.Done.Add(1)
	s.Ops.Add(int64(r.Ops))
	if len(r.Broken) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Failed == nil || plan.Seed < s.Failed.Seed {
		s.Failed, s.Result = plan, r
	}
}
