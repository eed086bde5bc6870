package lease

import "sync"

// position is the position of a lock in the wait queue of its name. The lock leaves the queue when it is over, and no
// use needs the position any more (I18).
type position struct {
	leaveQueue func() // only the first call counts

	mu    sync.Mutex
	users int  // guarded by mu: how many uses need the position, whether the lock is over or not
	left  bool // guarded by mu: the lock has left the queue, or will when the last use ends
}

// leave leaves the queue once no use needs the position in it.
func (p *position) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = true
	if p.users == 0 {
		p.leaveQueue()
	}
}

// use begins a use, and reports whether the lock is still in the queue. If so, letGo ends the use.
func (p *position) use() (mine bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	mine = p.users > 0 || !p.left
	if mine {
		p.users++
	}
	return mine
}

// letGo ends one use.
func (p *position) letGo() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users--
	if p.users == 0 && p.left {
		p.leaveQueue()
	}
}
