package session_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/event"
)

// blocking is a log handler that blocks, as one does whose pipe is full, at the end of a session.
type blocking struct {
	slog.Handler
	until <-chan struct{}
}

func (b blocking) Enabled(context.Context, slog.Level) bool { return true }

func (b blocking) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "lock session ended" {
		<-b.until
	}
	return nil
}

func TestALogHandlerThatBlocksKeepsNoCallerWaitingAndNoConnectionOpen(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		until := make(chan struct{})
		defer close(until)
		s.logger = slog.New(blocking{slog.DiscardHandler, until})
		l := s.newLocker(t)
		lock := mustTry(t, l, "x")
		s.delay(runs, lag{request: time.Second}, lag{})
		ended := s.holder("x")
		time.AfterFunc(time.Second/2, ended.end)
		if err := lock.Release(t.Context()); !errors.Is(err, sqllock.ErrLost) {
			t.Errorf("Release: %v", err)
		}
		synctest.Wait()
		select {
		case <-ended.cut:
		default:
			t.Error("the connection is open")
		}
		mustTry(t, l, "x")
	})
}

// The server answers with an error after Close has begun.
func TestAHeartbeatThatFailsDuringCloseIsNotTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		l := s.newLockerTold(t, func(_ context.Context, e sqllock.Event) {
			if e.Kind == event.RenewalFailed {
				t.Errorf("told: %v", e)
			}
		})
		mustTry(t, l, "x")
		s.delay(pings, lag{answer: time.Second / 2, refused: true})
		for before := len(s.statements(pings)); len(s.statements(pings)) == before; {
			pass(time.Second / 4)
		}
		l.Close()
	})
}

func TestTheEndOfASessionIsAWarningIfLocksEndWithIt(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		var log strings.Builder
		s.logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		l := s.newLocker(t)
		lock := mustTry(t, l, "x")
		s.holder("x").end()
		<-lock.Context().Done()
		synctest.Wait()
		if !strings.Contains(log.String(), `level=WARN msg="lock session ended" locks=1 `) {
			t.Errorf("with a lock: %s", log.String())
		}
		log.Reset()
		lock = mustTry(t, l, "x")
		holder := s.holder("x")
		if err := lock.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		holder.end()
		mustTry(t, l, "y")
		synctest.Wait()
		if !strings.Contains(log.String(), `level=DEBUG msg="lock session ended" locks=0 `) {
			t.Errorf("without locks: %s", log.String())
		}
	})
}
