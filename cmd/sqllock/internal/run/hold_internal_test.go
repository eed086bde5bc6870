package run

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/console"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/database"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
	"github.com/sqllock/sqllock/event"
)

// lostLock is a lock whose database cannot be reached.
type lostLock struct {
	*testing.T
	ctx context.Context
}

func (l lostLock) Name() string             { return "x" }
func (l lostLock) Context() context.Context { return l.ctx }

func (l lostLock) Release(context.Context) error {
	l.Error("a lock that was lost is released, which takes some seconds if the database cannot be reached")
	return sqllock.ErrLost
}

// noLocker is a placeholder for a Locker that is not used.
type noLocker struct{ database.Locker }

func TestALockThatWasLostIsNotReleased(t *testing.T) {
	t.Parallel()
	for _, lost := range []error{sqllock.ErrLost, sqllock.ErrExpired} {
		ctx, lose := context.WithCancelCause(t.Context())
		in, out := io.Pipe()
		c := &console.Console{
			Stdin: strings.NewReader(""), Stderr: io.Discard, Environ: []string{"PATH=" + os.Getenv("PATH")},
			Stdout: out, // shows that the command runs
		}
		r := &run{Console: c, request: request{name: "x", command: []string{"sh", "-c", "echo runs; exec sleep 1000"}, killAfter: time.Minute}, log: slog.New(slog.DiscardHandler)}
		received := process.ReceiveSignals()
		go func() {
			_, _ = fmt.Fscanln(in, new(string))
			lose(fmt.Errorf("%w: of a sudden", lost))
			_, _ = io.Copy(io.Discard, in)
		}()
		err := r.hold(t.Context(), noLocker{}, lostLock{t, ctx}, "/bin/sh", received)
		received.Stop()
		_ = out.Close()
		if exit.CodeOf(err) != exit.Lost {
			t.Errorf("it ended with %v", err)
		}
	}
}

// endOfCommand is a log handler that says when the command has ended.
type endOfCommand struct {
	slog.Handler
	ended chan struct{}
}

func (endOfCommand) Enabled(context.Context, slog.Level) bool { return true }

func (h endOfCommand) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "command ended" {
		close(h.ended)
	}
	return nil
}

// The Locker logs the loss in a goroutine of its own, here long after the command has ended.
func TestALossIsLoggedBeforeTheEnd(t *testing.T) {
	t.Parallel()
	ctx, lose := context.WithCancelCause(t.Context())
	c := &console.Console{Stdin: strings.NewReader(""), Stderr: io.Discard, Stdout: io.Discard, Environ: []string{"PATH=" + os.Getenv("PATH")}}
	ended, returned := make(chan struct{}), make(chan struct{})
	r := &run{
		Console: c, request: request{name: "x", command: []string{"sleep", "1000"}, killAfter: time.Minute},
		log: slog.New(endOfCommand{slog.DiscardHandler, ended}), lossTold: make(chan struct{}, 1),
	}
	received := process.ReceiveSignals()
	defer received.Stop()
	lose(sqllock.ErrLost)
	var logged atomic.Bool
	go func() {
		<-ended
		select {
		case <-returned:
		case <-time.After(100 * time.Millisecond):
		}
		logged.Store(true)
		r.hear(ctx, sqllock.Event{Kind: event.Lost, Name: "x"})
	}()
	path, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	err = r.hold(t.Context(), noLocker{}, lostLock{t, ctx}, path, received)
	if !logged.Load() || exit.CodeOf(err) != exit.Lost {
		t.Errorf("it ended with %v, and the loss was logged before: %t", err, logged.Load())
	}
	close(returned)
}

// freeLock is a lock that is released at once.
type freeLock struct{ sqllock.Lock }

func (freeLock) Release(context.Context) error { return nil }

// A signal that comes while the command ends would end a release that is repeated for --at-least.
func TestASignalOfTheCommandDoesNotEndTheRelease(t *testing.T) {
	t.Parallel()
	received := &process.Signals{C: make(chan os.Signal, 2)}
	received.C <- os.Interrupt
	received.C <- os.Interrupt
	if err := new(run).release(t.Context(), noLocker{}, freeLock{}, time.Now(), received); err != nil || len(received.C) > 0 {
		t.Errorf("%v, %d signals are left", err, len(received.C))
	}
}
