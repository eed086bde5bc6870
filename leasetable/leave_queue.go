package leasetable

import "time"

// leave gives up the turn of the name, once nobody needs it.
func (le *Lease) leave() {
	le.mu.Lock()
	defer le.mu.Unlock()
	le.queueLeft = true
	if le.queueUsers == 0 {
		le.leaveQueue()
	}
}

// letGo ends the need of the turn for one.
func (le *Lease) letGo() {
	le.mu.Lock()
	defer le.mu.Unlock()
	le.queueUsers--
	if le.queueUsers == 0 && le.queueLeft {
		le.leaveQueue()
	}
}

// leaveStrays has terms free the name by their id, whatever its token, and keep it as a release does. Only who has the turn may say so: when it
// was given up, another goroutine can have the name by the same id, and this lock was known to be nowhere;
// then it reports false.
func (le *Lease) leaveOrphans(keep time.Duration, terms ...*lease) (mine bool) {
	le.mu.Lock()
	mine = le.queueUsers > 0 || !le.queueLeft
	if mine {
		le.queueUsers++
	}
	le.mu.Unlock()
	if !mine {
		return false
	}
	for _, ls := range terms {
		ls.leaveOrphan(le.Name(), keep)
	}
	le.letGo()
	return true
}

// lose ends a lock that the database no longer knows of.
func (le *Lease) lose(cause error) {
	held := false
	for _, ls := range le.attachedTo().ends() {
		held = ls.drop(le) || held
	}
	if held {
		le.hold.End(cause)
		le.leave()
	}
}
