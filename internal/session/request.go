package session

import (
	"context"
	"errors"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/hold"
	"github.com/sqllock/sqllock/internal/observe"
)

// request is one call of Acquire or TryAcquire, for its events.
type request[K comparable] struct {
	l      *Locker[K]
	want   Want[K]
	began  time.Time
	waited bool
	asked  bool // the outcome is reported, or about to be
}

// errInterrupted is the outcome for a hook of an acquisition that did not return.
var errInterrupted = errors.New("a hook, a driver or a context panicked, or ended its goroutine")

// interrupted reports the outcome if the acquisition does not return: a hook may have counted a waiter.
func (r *request[K]) interrupted(ctx context.Context) {
	if !r.asked {
		_, _ = r.tell(ctx, nil, errInterrupted)
	}
}

// waits reports, once, that the caller has to wait. A nil request reports nothing.
func (r *request[K]) waits(ctx context.Context) {
	if r != nil && !r.waited {
		r.waited = true
		r.l.Events.Waiting(ctx, r.want.Name, r.began)
	}
}

// tell reports the outcome as an event, and returns it as the caller's result.
func (r *request[K]) tell(ctx context.Context, h *hold.Hold, err error) (sqllock.Lock, error) {
	r.asked = true
	if err != nil {
		err = &sqllock.OpError{Op: "acquire", Name: r.want.Name, Err: err}
	}
	if !r.want.Probe || err == nil { // otherwise another attempt follows
		r.report(ctx, h, err)
	}
	if err != nil {
		return nil, err
	}
	return h.Lock(), nil
}

// report reports the outcome. If user code panics there, or ends its goroutine, the caller has no lock.
func (r *request[K]) report(ctx context.Context, h *hold.Hold, err error) {
	returned := false
	defer func() {
		if !returned && h != nil {
			_ = h.Release(ctx) // an error ends the session, and with it the lock
		}
	}()
	r.l.Events.Asked(ctx, observe.Request{Name: r.want.Name, Began: r.began, Waited: r.waited, Whole: r.want.Whole}, h, err)
	returned = true
}
