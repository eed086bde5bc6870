package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/backoff"
	"github.com/sqllock/sqllock/internal/bound"
	"github.com/sqllock/sqllock/internal/jitter"
)

// OpenTimeout bounds the opening of a session, whatever its caller's context does.
const OpenTimeout = 15 * time.Second

// pool has the sessions of a Locker: it opens, chooses, parks and ends them.
type pool[K comparable] struct {
	Config[K]

	closing context.Context //nolint:containedctx // ends, with ErrClosed, when Close is called
	close   context.CancelCauseFunc
	running sync.WaitGroup // counts sessions, the opening of one, and locks being given back; added to under mu until Close

	mu        sync.Mutex
	sessions  []*session[K] // guarded by mu: all sessions, as they were opened
	shared    []*session[K] // guarded by mu: sessions for tries, each of which can hold many locks
	front     *session[K]   // guarded by mu: the shared session for the next try; may have ended
	opening   *opening[K]   // guarded by mu: the shared session that is being opened
	dedicated int           // guarded by mu: the number of dedicated sessions, including those being opened
	parked    []*parked[K]  // guarded by mu: dedicated sessions that are not in use
	full      time.Time     // guarded by mu: until when no dedicated session is opened
}

// opening is the opening of a session.
type opening[K comparable] struct {
	done chan struct{}
	s    *session[K] // written before done is closed or received from, as is err
	err  error
}

// sharedSession returns the session to try on. If only calls that were not answered yet leave no room, it waits for room.
func (p *pool[K]) sharedSession(ctx context.Context) (*session[K], error) {
	for {
		s, err := p.sharedNow(ctx)
		if !errors.Is(err, errFull) {
			return s, err
		}
		if err := p.sleep(ctx, jitter.Around(pollEvery)); err != nil {
			return nil, err
		}
	}
}

// sharedNow is sharedSession, but returns errFull if there is no room yet. Callers that come while a session is being
// opened wait for the same one. It is opened under no caller's context.
func (p *pool[K]) sharedNow(ctx context.Context) (*session[K], error) {
	p.mu.Lock()
	s, err := p.choose()
	if s != nil || err != nil {
		p.mu.Unlock()
		return s, err
	}
	o := p.opening
	if o == nil {
		if p.closing.Err() != nil {
			p.mu.Unlock()
			return nil, sqllock.ErrClosed
		}
		o = &opening[K]{done: make(chan struct{})}
		p.opening = o
		p.running.Go(func() { p.openShared(o) })
	}
	p.mu.Unlock()
	select {
	case <-o.done:
		if o.err != nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			if s, _ := p.leastLoaded(); s != nil {
				return s, nil
			}
		}
		return o.s, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// retry is the state of a request to shared sessions.
type retry struct{ again bool }

// after returns nil if a request whose session ended with err is to be sent on another session: what it did on the old
// one ended with that. It is sent once more, but a session that another caller cut off does not count.
func (r *retry) after(ctx context.Context, err error) error {
	var ended *endedError
	cut := errors.Is(err, errCut)
	switch {
	case !errors.As(err, &ended):
		return err
	case ctx.Err() != nil && cut:
		return context.Cause(ctx)
	case ctx.Err() != nil:
		return bound.WithCause(context.Cause(ctx), err)
	case r.again && !cut:
		return err
	}
	r.again = r.again || !cut
	return nil
}

// choose returns a shared session with room for a lock: the front one while it has room, then the one with the fewest
// locks. It returns nil when a new one is to be opened, and errFull if there may be room once calls are answered. A server
// answers more slowly the more locks a session holds. The caller holds mu.
func (p *pool[K]) choose() (*session[K], error) {
	if s := p.front; s != nil && !s.hasEnded() && s.load() < p.Limits.Locks {
		return s, nil
	}
	var least int
	p.front, least = p.leastLoaded()
	switch all := len(p.shared) >= p.Limits.shared(); {
	case p.front != nil && (least <= p.Limits.Locks/2 || all):
		return p.front, nil
	case !all || p.opening != nil || slices.ContainsFunc(p.shared, (*session[K]).hasEnded):
		p.front = nil
		return nil, nil
	case slices.ContainsFunc(p.shared, (*session[K]).hasRoom):
		return nil, errFull
	}
	return nil, p.Limits.full()
}

// leastLoaded returns the shared session with the fewest locks, if one has room, and the number of its locks. The
// caller holds mu.
func (p *pool[K]) leastLoaded() (least *session[K], locks int) {
	locks = p.Limits.Locks
	for _, s := range p.shared {
		if n := s.load(); n < locks && !s.hasEnded() {
			least, locks = s, n
		}
	}
	return least, locks
}

func (p *pool[K]) openShared(o *opening[K]) {
	defer close(o.done)
	ctx, cancel := withOpenTimeout(p.closing)
	defer cancel()
	o.s, o.err = p.newSession(ctx, false)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.opening = nil
	if o.err == nil && slices.Contains(p.sessions, o.s) {
		p.front = o.s
		p.shared = append(p.shared, o.s)
	}
}

// newSession opens a connection and starts its session. Close waits for it from the beginning, also while the
// connection is not open yet, but not for an opening that ignores its context.
func (p *pool[K]) newSession(ctx context.Context, dedicated bool) (_ *session[K], err error) {
	p.mu.Lock()
	if p.closing.Err() != nil {
		p.mu.Unlock()
		return nil, sqllock.ErrClosed
	}
	p.running.Add(1) // forget takes it back
	p.mu.Unlock()
	defer func() {
		if err != nil {
			p.running.Done()
		}
	}()

	c := connect(ctx, p.Open)
	if c.err != nil {
		return nil, withCause(ctx, c.err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := start(c.conn, p.Config, dedicated, c.sent, p.forget)
	p.sessions = append(p.sessions, s)
	if p.closing.Err() != nil {
		s.stop()
	}
	return s, nil
}

// errNoAnswer is why an opening ended that was given OpenTimeout. No caller set that deadline.
var errNoAnswer = fmt.Errorf("no answer within %v", OpenTimeout)

// withOpenTimeout returns the context of an opening.
func withOpenTimeout(closing context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(closing, OpenTimeout, errNoAnswer)
}

// withCause adds to a driver's error why ctx ended, if it has: the driver does not say.
func withCause(ctx context.Context, err error) error {
	unavailable := (*UnavailableError)(nil)
	switch {
	case !bound.Ended(ctx), errors.Is(err, context.Cause(ctx)): // or it is said already
		return err
	case context.Cause(ctx) == errNoAnswer && errors.As(err, &unavailable): //nolint:errorlint // the cause itself
		return &UnavailableError{Err: fmt.Errorf("%w: %w", errNoAnswer, unavailable.Err), Permanent: unavailable.Permanent}
	}
	return fmt.Errorf("%w: %w", context.Cause(ctx), err)
}

// forget drops a session that has ended, and then logs its end. Close waits for that.
func (p *pool[K]) forget(s *session[K]) {
	defer p.running.Done()
	p.drop(s)
	s.logEnd()
}

func (p *pool[K]) drop(s *session[K]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	it := func(other *session[K]) bool { return other == s }
	p.sessions = slices.DeleteFunc(p.sessions, it)
	p.shared = slices.DeleteFunc(p.shared, it)
	if s.dedicated {
		p.dedicated--
	}
}

// ended returns ErrClosed or the cause of ctx if a caller's work must end, and nil otherwise.
func (p *pool[K]) ended(ctx context.Context) error {
	if p.closing.Err() != nil {
		return sqllock.ErrClosed
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// sleep returns nil after d, or the reason if the caller's work must end before that.
func (p *pool[K]) sleep(ctx context.Context, d time.Duration) error {
	ctx, cancel := bound.CancelWith(ctx, p.closing)
	defer cancel()
	return backoff.Sleep(ctx, d)
}
