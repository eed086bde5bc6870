package simulation

import "time"

// excuses are the events after which a lock may be held twice, or be lost. The caller of a method holds the monitor's mu.
type excuses struct {
	prompt   bool                 // the statements that verify a lock are answered soon; does not change
	forcedAt map[string]time.Time // when a name was last released by force
	declared time.Time            // when a failover, or a clock that was set ahead, last broke promises
	failed   time.Time            // when the last failover was
	undone   bool                 // the server was restarted, and may have undone releases, and ends of leases
	longest  time.Duration        // the longest TTL in use
}

// excused reports whether a lock may be held twice: it was released by force, the clock was set ahead, or a failover
// forgot it.
func (e *excuses) excused(h *held) bool {
	return !e.forcedAt[h.name].Before(h.began) || e.undeclared()
}

// undeclared reports whether promises were broken by a failover, or by the clock, and not all users have heard of it yet.
func (e *excuses) undeclared() bool { return time.Now().Before(e.heard()) }

// heard returns when all users have heard of the last failover, or jump of the clock: a renewal says so, and then a read of
// each lock, of which some may hang.
func (e *excuses) heard() time.Time {
	within := e.longest
	if !e.prompt {
		within *= 4
	}
	return e.declared.Add(within)
}
