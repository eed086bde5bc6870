package seeds

import (
	"fmt"
	"sync"
	"time"
)

// Schedule is what happened in a history, step by step.
type Schedule struct {
	Traced bool // otherwise nothing is noted

	began time.Time
	mu    sync.Mutex
	lines []string // guarded by mu
}

// NewSchedule begins a schedule.
func NewSchedule(traced bool) *Schedule { return &Schedule{Traced: traced, began: time.Now()} }

// Add adds what a process did, or what happened in the world, which is number 0.
func (s *Schedule) Add(process int, text func() string) {
	if !s.Traced {
		return
	}
	line := text()
	who := "         "
	if process != 0 {
		who = fmt.Sprintf("process %d", process)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf("%12.6f  %s  %s", time.Since(s.began).Seconds(), who, line))
}

// Lines returns the schedule.
func (s *Schedule) Lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lines
}
