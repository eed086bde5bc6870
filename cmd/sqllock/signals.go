package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
)

// signals receives the signals that are meant for the command. Before the command runs, signals that would end it end
// the wait for the lock.
type signals struct{ C chan os.Signal }

// receiveSignals starts to receive the signals that end a program. It also keeps a write to a closed pipe from ending
// the program.
func receiveSignals() *signals {
	s := &signals{make(chan os.Signal, 16)}
	s.receive(endingSignals()...)
	outliveReaders()
	return s
}

// receive starts to receive these signals. A signal that is ignored, as under nohup, stays ignored.
func (s *signals) receive(signals ...os.Signal) {
	for _, sig := range signals {
		if !signal.Ignored(sig) {
			signal.Notify(s.C, sig)
		}
	}
}

// stop stops to receive signals.
func (s *signals) stop() { signal.Stop(s.C) }

// interrupting returns a context that ends at the next signal. done also ends it, and returns the *interruptError if
// there was a signal; later signals stay in the channel.
func (s *signals) interrupting(ctx context.Context) (_ context.Context, done func() error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var interrupt *interruptError // written before stopped is closed
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case sig := <-s.C:
			interrupt = &interruptError{sig}
			cancel(interrupt)
		case <-stop:
		}
	}()
	return ctx, func() error {
		close(stop)
		<-stopped
		cancel(context.Canceled)
		if interrupt == nil {
			return nil
		}
		return interrupt
	}
}

// interruptError means that a signal ended the wait.
type interruptError struct{ signal os.Signal }

func (e *interruptError) Error() string {
	return fmt.Sprintf("ended by a signal (%v) before the lock was taken", e.signal)
}
