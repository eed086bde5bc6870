package seeds

import (
	"context"
	"sync"
	"time"
)

// Life is the life of a simulated process, which can be stopped for some time, cut off from its server, and killed.
type Life struct {
	Alive  context.Context //nolint:containedctx // ends with the process
	Killed chan struct{}   // closed when the process is killed
	end    context.CancelFunc

	mu      sync.Mutex
	resumed chan struct{} // guarded by mu: nil unless the process is stopped; closed when it goes on
	cut     time.Time     // guarded by mu: nothing arrives until then
}

// NewLife begins a life, which ends with ctx.
func NewLife(ctx context.Context) *Life {
	l := &Life{Killed: make(chan struct{})}
	l.Alive, l.end = context.WithCancel(ctx)
	return l
}

// Pause waits while the process is stopped. It reports false if the process was killed.
func (l *Life) Pause() bool {
	for {
		l.mu.Lock()
		resumed := l.resumed
		l.mu.Unlock()
		if resumed == nil {
			return !l.IsKilled()
		}
		select {
		case <-resumed:
		case <-l.Killed:
		}
		if l.IsKilled() {
			return false
		}
	}
}

// IsKilled reports whether the process was killed.
func (l *Life) IsKilled() bool {
	select {
	case <-l.Killed:
		return true
	default:
		return false
	}
}

// IsStopped reports whether the process is stopped.
func (l *Life) IsStopped() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.resumed != nil
}

// Stop stops the process for d, or until ctx ends.
func (l *Life) Stop(ctx context.Context, d time.Duration) {
	l.mu.Lock()
	if l.resumed != nil || l.IsKilled() {
		l.mu.Unlock()
		return
	}
	resumed := make(chan struct{})
	l.resumed = resumed
	l.mu.Unlock()
	Sleep(ctx, d)
	l.mu.Lock()
	l.resumed = nil
	l.mu.Unlock()
	close(resumed)
}

// Kill ends the process at once.
func (l *Life) Kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.IsKilled() {
		close(l.Killed)
		l.end()
	}
}

// CutOff cuts the process off from its server for d.
func (l *Life) CutOff(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = time.Now().Add(d)
}

// Unreachable returns for how long the process is still cut off.
func (l *Life) Unreachable() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Until(l.cut)
}

// Sleep waits in virtual time, and reports whether ctx lives.
func Sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
