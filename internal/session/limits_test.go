package session_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/session"
)

func TestCallersThatWaitForTheFirstSessionDoNotFillItBeyondItsLimit(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		const most = 5
		s.delay(pings, lag{answer: time.Second}) // until which all of them wait
		limits, err := session.NewLimits(8, most)
		if err != nil {
			t.Fatal(err)
		}
		l := s.newLockerWith(t, limits, nil)
		var all sync.WaitGroup
		for i := range 2 * most {
			all.Go(func() {
				if _, err := l.TryAcquire(t.Context(), want(fmt.Sprint(i))); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		held := make(map[*conn]int)
		for i := range 2 * most {
			if on := s.holder(fmt.Sprint(i)); on == nil {
				t.Errorf("nobody holds %d", i)
			} else if held[on]++; held[on] > most {
				t.Errorf("a session holds %d locks; want %d at most", held[on], most)
			}
		}
	})
}
