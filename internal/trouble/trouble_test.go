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
