package trouble_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/internal/trouble"
)

var errAway, errOver = errors.New("the server is away"), errors.New("the time is over")

func TestTroubleIsToldWhenItBeginsAndNotForEachWho(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var met trouble.Trouble
		if err := met.With(errOver); !errors.Is(err, errOver) || errors.Is(err, errAway) {
			t.Errorf("without trouble: %v", err)
		}
		if !met.Meet(errAway) {
			t.Error("nobody was told")
		}
		<-time.After(time.Hour)
		if met.Meet(errAway) {
			t.Error("told again, of the same trouble")
		}
		if err := met.With(errOver); !errors.Is(err, errOver) || !errors.Is(err, errAway) {
			t.Errorf("in trouble: %v", err)
		}
		met.Over()
		if met.Last() != nil || !met.Meet(errAway) {
			t.Error("nobody was told of the next one")
		}
		met.Over()
		if met.Meet(errAway) || met.Last() == nil {
			t.Error("told of each that follows soon")
		}
		<-time.After(trouble.TellEvery)
		if !met.Meet(errAway) || met.Meet(errAway) {
			t.Error("one that followed soon, and goes on, is not told once")
		}
	})
}

// One waiter gets answers, and another does not.
func TestTroubleThatRecursIsToldLessAndLessOften(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var met trouble.Trouble
		toldIn := func(d time.Duration) (n int) {
			for range d / time.Second {
				if met.Meet(errAway) {
					n++
				}
				met.Over()
				<-time.After(time.Second)
			}
			return n
		}
		if n := toldIn(10 * time.Minute); n != 8 {
			t.Errorf("told %d times in ten minutes; want after 3 s, 6 s, 12 s, …", n)
		}
		if n := toldIn(time.Hour); n < 11 || n > 13 {
			t.Errorf("told %d times in an hour; want every 5 minutes", n)
		}
		<-time.After(time.Minute)
		if n := toldIn(4 * time.Second); n != 2 {
			t.Errorf("after a minute without trouble: told %d times", n)
		}
	})
}

func TestPausesGrowToABound(t *testing.T) {
	t.Parallel()
	var p trouble.Pause
	for want := 5 * time.Millisecond; want < 10*time.Minute; want *= 2 {
		bounded := min(want, 2*time.Second)
		if got := p.Next(); got < bounded/2 || got >= 3*bounded/2 {
			t.Fatalf("a pause of %v; want about %v", got, bounded)
		}
	}
}
