package seeds

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// search is a run of many histories, until one breaks an invariant.
type search[P any] struct {
	Simulation[P]
	first, count uint64        // the seeds
	within       time.Duration // no history begins later than that; 0: no limit

	done, ops atomic.Int64
	next      atomic.Uint64

	mu     sync.Mutex
	failed *failure[P] // guarded by mu: of the lowest seed that broke an invariant, of those that were run
}

// failure is a history that broke an invariant.
type failure[P any] struct {
	seed   uint64
	plan   P
	result Result
}

// run runs the histories, on all processors.
func (s *search[P]) run() {
	began := time.Now()
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for s.more(began) {
				n := s.next.Add(1)
				if n > s.count {
					return
				}
				s.history(s.first + n - 1)
			}
		})
	}
	workers.Wait()
}

// more reports whether another history begins.
func (s *search[P]) more(began time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed == nil && (s.within == 0 || time.Since(began) < s.within)
}

func (s *search[P]) history(seed uint64) {
	plan := s.Draw(seed)
	r := s.Run(plan, false)
	s.done.Add(1)
	s.ops.Add(int64(r.Ops))
	if len(r.Broken) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil || seed < s.failed.seed {
		s.failed = &failure[P]{seed, plan, r}
	}
}
