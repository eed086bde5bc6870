//go:build unix

package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// worker is a client: a goroutine of whichever child process runs in its place.
type worker struct {
	run    *run
	client int // counts the workers of all processes
	id     int // counts those of one process
	name   string
	rand   *rand.Rand // its own
}

// work goes on until the run is over.
func (w *worker) work(ctx context.Context, p *process) {
	for ctx.Err() == nil {
		if w.round(ctx, p) {
			continue
		}
		<-p.replaced
		if p = p.successor; p == nil {
			return
		}
	}
}

// round takes the lock, looks at it for a while and gives it back. It reports false when the
// process has ended.
func (w *worker) round(ctx context.Context, p *process) bool {
	verb := doTake
	if w.rand.IntN(4) == 0 {
		verb = doTry
	}
	text, at, ok := p.ask(w.id, verb+" "+w.name)
	if !ok {
		w.run.count("unanswered")
		return false
	}
	text, token := withToken(text)
	if w.said(verb, text); text != didTake {
		if text != didRefuse {
			wait(ctx, 50*time.Millisecond) // the server is away, and has enough to do
		}
		w.pause(ctx)
		return true
	}
	lock := w.run.history.Taken(w.client, w.name, at)
	lock.Token(token)
	for least := w.rand.IntN(4); least > 0 || text != isLost && p.keep.Load(); least-- {
		w.pause(ctx)
		verb = w.holding(p.keep.Load())
		if text, at, ok = p.ask(w.id, verb); !ok {
			w.run.count("died with it")
			return false
		}
		switch w.said(verb, text); {
		case text == isAlive:
			lock.Alive(at)
		case text == didWrite && verb == doGuard:
			lock.Wrote(at)
		case text == isOutdone:
			lock.Outdone(at)
			text = isLost
		}
	}
	if text, at, ok = p.ask(w.id, doRelease); !ok {
		w.run.count("died with it")
		return false
	}
	if w.said(doRelease, text); text == didRelease {
		lock.Released(at)
	}
	return true
}

// holding is what a holder is asked: to write, above all, when it is about to be stopped.
func (w *worker) holding(kept bool) string {
	switch {
	case !w.run.opts.Writes:
		return doCheck
	case kept && w.rand.IntN(4) > 0:
		return doGuard
	}
	return []string{doCheck, doGuard, doFence}[w.rand.IntN(3)]
}

// withToken splits the answer to a question for a lock.
func withToken(text string) (word string, token int64) {
	if word, digits, _ := strings.Cut(text, " "); word == didTake {
		token, _ = strconv.ParseInt(digits, 10, 64) // 0 if it has none
		return word, token
	}
	return text, 0
}

// said counts an answer. An error is no claim, but can still be a mistake.
func (w *worker) said(verb, text string) {
	switch text {
	case didTake, didRefuse, isAlive, didRelease:
		w.run.told(text)
	case isLost, didWrite, isOutdone:
		w.run.told(verb + " " + text)
	default:
		w.run.failed(fmt.Sprintf("process %d: %s %q: %s", w.client/w.run.perProcess(), verb, w.name, text))
	}
}

// pause lets up to 10 ms pass.
func (w *worker) pause(ctx context.Context) {
	wait(ctx, time.Duration(w.rand.Int64N(int64(10*time.Millisecond))))
}

// wait lets a time pass.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
