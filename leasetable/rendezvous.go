package leasetable

import (
	"sync"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// rendezvous brings the calls of the goroutines of one TryAcquireAll together. Each member sends its call, or nil if it
// ends without one. There is room for all, so no member waits to send.
type rendezvous chan *store.Call

// serve runs the calls together when the last member has sent. When half of the time of the first call is over, serve runs
// those that are there: the rest of the time is for the statement. It returns when every member has sent.
func (r rendezvous) serve(run func([]*store.Call)) {
	var calls []*store.Call
	var late <-chan time.Time
	for awaited := cap(r); awaited > 0; {
		select {
		case call := <-r:
			awaited--
			if call == nil {
				continue
			}
			if calls == nil {
				late = time.After(call.Left() / 2)
			}
			calls = append(calls, call)
		case <-late:
			var running sync.WaitGroup
			running.Go(func() { run(calls) }) // a driver may end the goroutine, and others are awaited
			running.Wait()
			calls, late = nil, nil
		}
	}
	run(calls)
}

// member is one goroutine of a rendezvous. Every member must send.
type member struct {
	rendezvous
	once sync.Once
}

// send sends the member's call, or nil, the first time. It reports whether it did.
func (m *member) send(call *store.Call) (sent bool) {
	m.once.Do(func() {
		m.rendezvous <- call
		sent = true
	})
	return sent
}
