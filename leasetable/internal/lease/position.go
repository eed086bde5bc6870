package lease

import (
	"sync"
	"sync/atomic"
)

// Head is the head of the wait queue of a name. An attempt has it, and then the lock that it acquires. A nil Head is that
// of an attempt outside the queue.
type Head struct {
	keeper *Keeper
	turns  Turns
	name   string
	permit bool // the attempt is for a share or permit
	left   atomic.Bool

	contended bool // other processes waited for the turn that beginRelease gave back
}

// Turns are the turns of names in the server's own queue.
type Turns interface {
	// Hold says that the name was acquired. It reports whether other processes wait for their turn.
	Hold(name string) (contended bool)
	// Leave gives the turn of a name back: this process no longer wants the name. It reports whether others do.
	Leave(name string) (contended bool)
}

// NewHead returns the head of a name's wait queue for an attempt that has come to it.
func NewHead(k *Keeper, turns Turns, name string, permit bool) *Head {
	return &Head{keeper: k, turns: turns, name: name, permit: permit}
}

// Leave leaves the queue, and the server's own. Only the first call counts. If other processes want the name, this one
// yields to them; see wait.Waiter.StandFirst. After an attempt to get a share or permit it has the next waiter poll at
// once (RetryNow), because there may be room for it soon.
func (h *Head) Leave() {
	if h == nil || !h.left.CompareAndSwap(false, true) {
		return
	}
	if h.turns.Leave(h.name) || h.contended {
		h.keeper.Yields.QueueFor(h.name)
	}
	if !h.permit || !h.keeper.Queue.Pass(h.name, Handoff{RetryNow: true}) {
		h.keeper.Queue.Done(h.name)
	}
}

// position is the position of a lock in the wait queue of its name. The lock leaves the queue when it is over, and no
// use needs the position any more (I18).
type position struct {
	head *Head

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
		p.head.Leave()
	}
}

// HoldTurn says in the server's queue that the name was acquired. If the lock has left the queue of this process already,
// another goroutine may wait for the turn.
func (h *Held) HoldTurn() {
	if h.position.use() {
		defer h.position.letGo()
		h.HasWaiter = h.position.head.turns.Hold(h.Name)
	}
}

// beginRelease gives the turn back before the release is sent: the two overlap. The next process in the queue may find
// the name still held, and then polls as the head (I36). If the lock has left the queue, another goroutine may have the
// turn by now.
func (p *position) beginRelease() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.left && p.head != nil {
		p.head.contended = p.head.turns.Leave(p.head.name)
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
		p.head.Leave()
	}
}
