package leasetable

import "time"

// leave gives up the turn of the name, once nobody needs it.
func (le *Lease) leave() {
	le.mu.Lock()
	defer le.mu.Unlock()
	le.left = true
	if le.kept == 0 {
		le.over()
	}
}

// letGo ends the need of the turn for one.
func (le *Lease) letGo() {
	le.mu.Lock()
	defer le.mu.Unlock()
	le.kept--
	if le.kept == 0 && le.left {
		le.over()
	}
}

// leaveStrays has terms free the name by their id, whatever its token, and keep it as a release does. Only who has the turn may say so: when it
// was given up, another goroutine can have the name by the same id, and this lock was known to be nowhere;
// then it reports false.
func (le *Lease) leaveStrays(keep time.Duration, terms ...*term) (mine bool) {
	le.mu.Lock()
	mine = le.kept > 0 || !le.left
	if mine {
		le.kept++
	}
	le.mu.Unlock()
	if !mine {
		return false
	}
	for _, t := range terms {
		t.leaveStray(le.Name(), keep)
	}
	le.letGo()
	return true
}

// lose ends a lock that the database no longer knows of.
func (le *Lease) lose(cause error) {
	held := false
	for _, t := range le.spot().ends() {
		held = t.drop(le) || held
	}
	if held {
		le.hold.End(cause)
		le.leave()
	}
}
