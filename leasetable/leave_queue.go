package leasetable

import "time"

// leave leaves the wait queue of the name, once no use needs the position in it.
func (le *Lease) leave() {
	le.mu.Lock()
	defer le.mu.Unlock()
	le.queueLeft = true
	if le.queueUsers == 0 {
		le.leaveQueue()
	}
}

// letGo ends one use of the position in the wait queue.
func (le *Lease) letGo() {
	le.mu.Lock()
	defer le.mu.Unlock()
	le.queueUsers--
	if le.queueUsers == 0 && le.queueLeft {
		le.leaveQueue()
	}
}

// leaveOrphans makes leases free the name by their ids, whatever its token, and with the minimum hold of a release.
// That is safe only while this lock has its position in the wait queue. If the lock has left the queue, another
// goroutine may hold the name by the same lease id, and this lock was known to be over; leaveOrphans then reports
// false.
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

// lose ends a lock that the database no longer has.
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
