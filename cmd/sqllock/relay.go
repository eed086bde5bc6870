package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
)

// relay receives the signals that are meant for the command. Before the command runs, signals that would end it end the
// wait for the lock.
type relay struct{ signals chan os.Signal }

// newRelay starts to receive signals.
func newRelay() *relay {
	r := &relay{signals: make(chan os.Signal, 16)}
	r.receive(endingSignals()...)
	outliveReaders()
	return r
}

// receive starts to receive these signals. A signal that is ignored, as under nohup, stays ignored.
func (r *relay) receive(signals ...os.Signal) {
	for _, sig := range signals {
		if !signal.Ignored(sig) {
			signal.Notify(r.signals, sig)
		}
	}
}

func (r *relay) stop() { signal.Stop(r.signals) }

// interrupting returns a context that ends at the next signal. done also ends it, and returns the *interruptError if
// there was a signal; later signals stay in the channel.
func (r *relay) interrupting(ctx context.Context) (_ context.Context, done func() error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var interrupt *interruptError // written before stopped is closed
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case sig := <-r.signals:
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
