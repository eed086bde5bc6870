package memory_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/internal/session/internal/memory"
)

// The server in memory does what PostgreSQL and MySQL do with advisory locks and GET_LOCK.

const ttl = 30 * time.Second

// recorded returns a server, and a function that waits and returns what has happened on it.
func recorded() (*memory.Server, func() []string) {
	var seen []string
	s := memory.NewServer(func(c memory.Change) {
		what := [...]string{"gets", "gets again", "gives back", "ends"}[c.What]
		if c.What == memory.Ended {
			seen = append(seen, fmt.Sprintf("%d %s: %v", c.Session.ID, what, c.Reason))
		} else {
			seen = append(seen, fmt.Sprintf("%d %s %s", c.Session.ID, what, c.Key))
		}
	})
	return s, func() (all []string) {
		synctest.Wait()
		s.Locked(func() { all = seen })
		return all
	}
}

func mustBe(t *testing.T, got any, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v; want %v", got, want)
	}
}

func TestAKeyGoesToWaitersInTheirOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, seen := recorded()
		sessions := make([]*memory.Session, 4)
		for i := range sessions {
			sessions[i] = s.Open(1, nil, ttl)
		}
		sessions[0].Take("x", false)
		for _, e := range sessions[1:3] {
			go e.Wait("x", false, time.Minute)
			synctest.Wait()
		}
		mustBe(t, sessions[3].Take("x", false), false)
		sessions[0].Give("x")
		mustBe(t, sessions[3].Take("x", false), false) // behind the queue
		sessions[1].End(memory.Killed)
		mustBe(t, seen(), []string{"1 gets x", "1 gives back x", "2 gets x", "2 ends: killed", "3 gets x"})
		s.Restart()
	})
}

func TestAShareDoesNotPassAWaiterForTheWholeKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := recorded()
		reader, writer, later := s.Open(1, nil, ttl), s.Open(2, nil, ttl), s.Open(3, nil, ttl)
		mustBe(t, reader.Take("x", true), true)
		writes := make(chan bool, 1)
		go func() { writes <- writer.Wait("x", false, time.Second) }()
		synctest.Wait()
		mustBe(t, later.Take("x", true), false)
		mustBe(t, <-writes, false) // after a second
		mustBe(t, later.Take("x", true), true)
		s.Restart()
	})
}

func TestASessionEndsAfterItsTTLAndNotDuringAStatement(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, seen := recorded()
		e := s.Open(1, nil, ttl)
		began := time.Now()
		e.Begin()
		<-time.After(2 * ttl)
		e.Take("x", false)
		e.Finish()
		<-e.Over()
		mustBe(t, time.Since(began), 3*ttl)
		mustBe(t, seen(), []string{"1 gets x", "1 ends: idle for its TTL"})
		s.Locked(func() {
			_, free := s.FreeSince("x")
			mustBe(t, free, true)
		})
	})
}

// A client that has left is noticed when its statement ends, which may be after the grant.
func TestAWaiterThatWasCutOffIsGrantedItsKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, seen := recorded()
		holder, waiter := s.Open(1, nil, ttl), s.Open(2, nil, ttl)
		holder.Take("x", false)
		waiter.Begin()
		done := make(chan bool)
		go func() { done <- waiter.Wait("x", false, time.Minute) }()
		synctest.Wait()
		waiter.Leave()
		holder.Give("x")
		mustBe(t, <-done, true)
		mustBe(t, waiter.Finish(), false)
		mustBe(t, seen(), []string{"1 gets x", "1 gives back x", "2 gets x", "2 ends: closed by its client"})
		s.Restart()
	})
}
