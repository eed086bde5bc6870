package waitqueue

import (
	"context"
	"time"
)

// Tries queues goroutines that try the same thing, one after the other. If a try fails, those of the goroutines that
// waited meanwhile get its error: their own tries would fail as well, each after as long. The zero value is ready for use.
type Tries[K comparable] struct{ queue Queue[K, failure, struct{}] }

// failure is why the last try failed, and when. The zero value: it did not.
type failure struct {
	err error
	at  time.Time
}

// Wait enters the queue of key and waits until the caller is at its head. The caller then tries, and calls Done. If a try
// fails meanwhile, Wait returns its error; if ctx ends first, context.Cause(ctx). After an error the caller has left the
// queue.
func (t *Tries[K]) Wait(ctx context.Context, key K) error {
	came := time.Now()
	last, err := t.queue.Wait(ctx, key)
	if err != nil {
		return err
	}
	if last.err != nil && !came.After(last.at) {
		t.leave(key, last)
		return last.err
	}
	return nil
}

// Done leaves the queue of key after a try. err is why the next tries would fail as well, or nil.
func (t *Tries[K]) Done(key K, err error) { t.leave(key, failure{err, time.Now()}) }

func (t *Tries[K]) leave(key K, last failure) {
	if !t.queue.Pass(key, last) {
		t.queue.Done(key)
	}
}
