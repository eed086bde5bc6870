package process

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
)

// Signals receives the signals that are meant for the command. Before the command runs, signals that would end it end
// the wait for the lock.
type Signals struct {
	C chan os.Signal // the signals that have come
}

// ReceiveSignals starts to receive the signals that end a program. It also makes a write to a closed pipe fail
// instead of ending the program.
func ReceiveSignals() *Signals {
	s := &Signals{C: make(chan os.Signal, 16)}
	s.receive(endingSignals()...)
	outliveReaders()
	return s
}

// receive starts to receive these signals. SIGHUP and SIGINT stay ignored, for the command too, if sqllock was started
// so, as by nohup. So do SIGTTIN, SIGTTOU and, if it is not received, SIGTSTP. The Go runtime handles all others from the
// start, so they get their default in the command.
func (s *Signals) receive(signals ...os.Signal) {
	for _, sig := range signals {
		if !signal.Ignored(sig) {
			signal.Notify(s.C, sig)
		}
	}
}

// forget makes these signals do again what they do by default.
func (*Signals) forget(signals ...os.Signal) {
	for _, sig := range signals { // without a signal, Reset would mean all
		signal.Reset(sig)
	}
}

// Discard drops the signals that have come. They were meant for a command that has ended.
func (s *Signals) Discard() {
	for {
		select {
		case <-s.C:
		default:
			return
		}
	}
}

// Stop stops receiving signals.
func (s *Signals) Stop() { signal.Stop(s.C) }

// Interrupting returns a context that ends at the next signal. done also ends it, and returns the *InterruptError if
// there was a signal; later signals stay in the channel.
func (s *Signals) Interrupting(ctx context.Context) (_ context.Context, done func() error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var interrupt *InterruptError // written before stopped is closed
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case sig := <-s.C:
			interrupt = &InterruptError{sig}
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

// InterruptError means that a signal ended the wait.
type InterruptError struct{ Signal os.Signal }

func (e *InterruptError) Error() string {
	return fmt.Sprintf("ended by a signal (%v) before the lock was taken", e.Signal)
}

// EndedBy returns the error of a program that a signal ends. err has its message, and may be nil.
func EndedBy(sig os.Signal, err error) error {
	code := exit.Signal + 2
	if number, ok := sig.(syscall.Signal); ok {
		code = exit.Signal + int(number)
	}
	return &exit.Error{Code: code, Err: err, Interrupted: sig == os.Interrupt}
}
