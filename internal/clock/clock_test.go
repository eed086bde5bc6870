package clock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/internal/clock"
)

// These tests pretend that the machine was suspended, one after the other.

func TestTheTimeGoesOnWhileTheMachineIsSuspended(t *testing.T) { //nolint:paralleltest // see above
	before, plain := clock.Now(), time.Now()
	deadline := before.Add(2 * time.Hour)
	clock.Pretend(time.Hour)
	// The clocks are not read at the same moment: a suspension is measured some microseconds too long or too short.
	if since := clock.Since(before); since < 59*time.Minute || since > 61*time.Minute {
		t.Errorf("after an hour, %v have passed", since)
	}
	if left := clock.Until(deadline); left < 59*time.Minute || left > 61*time.Minute {
		t.Errorf("of two hours, %v are left", left)
	}
	if at := clock.Plain(deadline).Sub(plain); at < 59*time.Minute || at > 61*time.Minute {
		t.Errorf("by package time the deadline is after %v", at)
	}
}

func TestASuspensionCountsAtOnce(t *testing.T) { //nolint:paralleltest // see above
	before := clock.Now() // so there is a measurement that is not old
	clock.Pretend(time.Minute)
	if since := clock.Since(before); since < 59*time.Second || since > 2*time.Minute {
		t.Errorf("after a minute, %v have passed", since)
	}
}

func BenchmarkNow(b *testing.B) {
	for b.Loop() {
		clock.Now()
	}
}

func TestATimerFiresSoonAfterASuspension(t *testing.T) { //nolint:paralleltest // see above
	synctest.Test(t, func(t *testing.T) {
		fired := make(chan time.Time, 2)
		began := time.Now()
		timer := clock.AfterFunc(clock.Now().Add(time.Hour), func() { fired <- time.Now() })
		defer timer.Stop()
		clock.Pretend(2 * time.Hour)
		if took := (<-fired).Sub(began); took > time.Second {
			t.Errorf("it fired %v after the suspension", took)
		}
		began = time.Now()
		timer.Reset(clock.Now().Add(90*time.Minute + time.Nanosecond))
		if took := (<-fired).Sub(began); took != 90*time.Minute+time.Nanosecond {
			t.Errorf("without a suspension it fired after %v", took)
		}
		timer.Reset(clock.Now().Add(time.Minute))
		timer.Stop()
		<-time.After(time.Hour)
		if len(fired) > 0 {
			t.Error("a timer that was stopped has fired")
		}
	})
}
