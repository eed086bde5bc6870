package session

import (
	"context"
	"time"
)

// mustAsk reports whether it is time to ask the server for waiters for the exclusive lock (I48). The caller holds mu.
func (s *share[K]) mustAsk() bool { return time.Since(s.asked) > passTime }

// ask asks the server whether another process is in the queue for the exclusive lock. Callers that come meanwhile wait
// for the same answer. After an error the last answer counts. If the caller left before the answer, the next one asks
// again.
func (s *share[K]) ask(ctx context.Context) error {
	s.l.mu.Lock()
	if other := s.asking; other != nil {
		s.l.mu.Unlock()
		select {
		case <-other:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	answered := make(chan struct{})
	s.asking = answered
	waited, left := s.waited, true
	s.l.mu.Unlock()
	defer func() { // also when user code panics
		s.l.mu.Lock()
		defer s.l.mu.Unlock()
		if !left {
			s.asked, s.waited = time.Now(), waited
		}
		s.asking = nil
		close(answered)
	}()
	holder, err := s.l.holder(ctx, s.want.Key)
	if err == nil {
		waited = holder.Waiters > 0
	}
	left = err != nil && ctx.Err() != nil
	return err
}

// isWanted reports whether somebody waits for the exclusive lock: nobody joins the share then (I48). The caller holds
// mu.
func (s *share[K]) isWanted() bool { return s.waited || s.isWantedHere() }

// isWantedHere reports whether a goroutine of this process waits for the exclusive lock. A share in the wait queue, which
// may be one that its last member has just left, does not count.
func (s *share[K]) isWantedHere() bool { return s.l.queue.Others(s.want.Key, true) > 0 }

// mayJoinAnother reports whether s waits behind a share that may be joined now. It asks the server again if its last
// answer, that another process waits for the exclusive lock, is older than pause.
func (s *share[K]) mayJoinAnother(ctx context.Context, pause time.Duration) bool {
	s.l.mu.Lock()
	now := s.l.shares[s.want.Key]
	if now == s || now == nil || !now.isSettled() || now.isOver() || now.members == 0 || now.isWantedHere() {
		s.l.mu.Unlock()
		return false
	}
	asked := now.asked
	ask := now.mustAsk() && (!now.waited || time.Since(asked) > pause)
	s.l.mu.Unlock()
	if ask {
		_ = now.ask(ctx) // after an error the last answer counts
	}
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	unanswered := ask && now.asked.Equal(asked) // who asked has left
	return !unanswered && s.l.shares[s.want.Key] == now && !now.isOver() && now.members > 0 && !now.isWanted()
}
