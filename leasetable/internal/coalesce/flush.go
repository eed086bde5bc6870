package coalesce

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/dberr"
)

// maxBatch bounds how many requests one statement serves.
const maxBatch = 1000

// A statement for one request may wait for a row lock. Other requests do not wait for a statement that takes much
// longer than those before it: they get another statement, which waits for no row lock.
const (
	maxRunning     = 3
	maxPace        = 250 * time.Millisecond
	maxBatchWindow = 500 * time.Microsecond
	maxStill       = 100 // how often the batch window yields while the clock stands still, as a coarse or a virtual one does
)

// slow is how long a statement may take before the next request stops waiting for it. The caller holds mu.
func (q *Queue[R, T]) slow() time.Duration { return max(5*time.Millisecond, 2*q.pace) }

// mayStart reports whether a statement can start now (I38). The caller holds mu.
func (q *Queue[R, T]) mayStart() bool {
	running := q.running
	if !q.inlineSince.IsZero() && !q.serialized && time.Since(q.inlineSince) > q.slow() { // it seems to wait for a row lock
		running--
	}
	switch {
	case q.windowOpen || q.running == maxRunning:
		return false
	case running == 0 && q.busy == 0:
		return true
	}
	return !q.serialized && time.Since(q.began) > q.slow()
}

// start counts a statement that starts, and reports whether it is, or could become, one for several requests. The
// caller holds mu.
func (q *Queue[R, T]) start() (several bool) {
	q.running++
	q.began = time.Now()
	if several = q.size > 1; several {
		q.busy++
	}
	return several
}

// ended counts a statement, which was for so many callers, as ended. The caller holds mu.
func (q *Queue[R, T]) ended(several bool, callers int) {
	q.running--
	if several {
		q.busy--
	}
	q.size = min(max(callers+q.waiting(), q.size/2), maxBatch)
}

// next starts a statement for the queued calls, if one can start. The caller holds mu.
func (p *pair[R, T]) next() (q *Queue[R, T], several bool) {
	for _, q := range p.queues {
		switch {
		case len(q.calls) == 0:
		case q.mayStart():
			return q, q.start()
		case !q.serialized && !q.alarmed:
			q.alarmed = true
			q.alarm.Reset(q.slow())
		}
	}
	return nil, false
}

// alarmRang has a statement run for the calls that wait for a slow one.
func (q *Queue[R, T]) alarmRang() {
	q.mu.Lock()
	q.alarmed = false
	q.startFlush()
}

// startFlush has another goroutine run statements for the queued calls, if one can start. The caller holds mu, and
// startFlush unlocks it.
func (p *pair[R, T]) startFlush() {
	q, several := p.next()
	p.mu.Unlock()
	if q == nil {
		return
	}
	flush := func() { q.flush(several) }
	if p.hand(flush) != nil { // the statements fail at once, since their contexts have ended
		flush()
	}
}

// flush runs a statement, which was started, and then others as long as there are queued calls.
func (q *Queue[R, T]) flush(several bool) {
	for q != nil {
		q, several = q.flushOnce(several)
	}
}

// flushOnce is flush for one statement. It returns what is to be run next. If a driver ends the goroutine, another one goes on.
func (q *Queue[R, T]) flushOnce(several bool) (next *Queue[R, T], nextSeveral bool) {
	q.mu.Lock()
	if several {
		q = q.batchWindow()
	}
	var calls []*Call[R, T]
	if len(q.calls) > 0 {
		calls, q.calls = q.firstAlike(q.calls)
	}
	began := time.Now()
	q.began = began
	single := len(calls) == 1 && !several && q.inlineSince.IsZero()
	if single {
		q.inlineSince = began
	}
	q.mu.Unlock()

	returned := false
	defer func() {
		q.mu.Lock()
		if single {
			q.inlineSince = time.Time{}
		}
		if len(calls) > 1 {
			q.pace = min(time.Since(began), maxPace)
		}
		q.ended(several, len(calls))
		if returned {
			next, nextSeveral = q.next()
			q.mu.Unlock()
		} else {
			q.startFlush()
		}
		answer(calls, returned)
	}()
	if len(calls) > 0 {
		q.run(longest(calls), calls, single)
	}
	returned = true
	return nil, false
}

// answer answers the callers of a statement, which has returned or not.
func answer[R, T any](calls []*Call[R, T], returned bool) {
	for _, call := range calls {
		if !returned {
			call.err = dberr.ErrUnreturned
		}
		close(call.done)
	}
}

// waiting is how many calls are queued. The caller holds mu.
func (p *pair[R, T]) waiting() int { return len(p.queues[0].calls) + len(p.queues[1].calls) }

// batchWindow waits for as many calls as came lately, for at most ¼ of pace and 0.5 ms. Then it returns the queue to
// serve: the first of the pair if that has calls and runs no statement, so that all callers come to ask for the same.
// The caller holds mu, which is unlocked meanwhile.
func (q *Queue[R, T]) batchWindow() *Queue[R, T] {
	q.windowOpen = true
	now := time.Now()
	end := now.Add(min(q.pace/4, maxBatchWindow))
	for still := 0; q.waiting() < q.size && still < maxStill && now.Before(end); still++ {
		q.mu.Unlock()
		runtime.Gosched()
		q.mu.Lock()
		if later := time.Now(); later.After(now) {
			now, still = later, 0
		}
	}
	q.windowOpen = false
	if first := q.queues[0]; first.running == 0 && len(first.calls) > 0 {
		q.running--
		first.running++
		return first
	}
	return q
}

// firstAlike returns the first call with the others that can share a statement with it, and the rest.
func (q *Queue[R, T]) firstAlike(calls []*Call[R, T]) (alike, rest []*Call[R, T]) {
	for _, call := range calls {
		if len(alike) == 0 || len(alike) < maxBatch && q.alike(calls[0].request, call.request) {
			alike = append(alike, call)
		} else {
			rest = append(rest, call)
		}
	}
	return alike, rest
}

// longest returns the context that ends last: a call whose time is nearly up fails no others.
func longest[R, T any](calls []*Call[R, T]) context.Context {
	return slices.MaxFunc(calls, func(a, b *Call[R, T]) int { return cmp.Compare(a.Left(), b.Left()) }).ctx
}

// run runs a statement for calls and writes their results, unless ctx has ended (dberr.ErrUnsent). The statement for a
// single call may wait for a row lock.
func (q *Queue[R, T]) run(ctx context.Context, calls []*Call[R, T], single bool) {
	if err := ctx.Err(); err != nil {
		for _, call := range calls {
			call.err = dberr.Unsent(err)
		}
		return
	}
	ctx, cancel := context.WithTimeout(ctx, q.kind.Within)
	defer cancel()
	if single {
		calls[0].result, calls[0].err = q.kind.One(ctx, calls[0].request)
		return
	}
	requests := make([]R, len(calls))
	for i, call := range calls {
		requests[i] = call.request
	}
	results, err := q.kind.Many(ctx, requests)
	for i, call := range calls {
		switch {
		case err == nil:
			call.result = results[i]
		case dberr.OutcomeKnown(err) && !q.serialized: // nothing was done, maybe because of one request: each goes on alone
		default:
			call.err = err
		}
	}
}
