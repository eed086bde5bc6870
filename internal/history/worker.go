//go:build unix

package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/sqllock/sqllock/internal/backoff"
)

// worker is a client: a goroutine in the child process that currently has its place.
type worker struct {
	run  *run
	id   int // number among the workers of one process or, if locks are handed over, of all processes
	name string
	rand *rand.Rand // its own
}

// work runs rounds until the run is over.
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

// round acquires the lock, uses it for a while and releases it. It returns false if the process has ended.
func (w *worker) round(ctx context.Context, p *process) bool {
	verb := doTake
	if w.rand.IntN(4) == 0 {
		verb = doTry
	}
	limit := w.limit()
	text, at, ok := p.ask(w.id, verb+" "+withLimit(w.name, limit))
	if !ok {
		w.run.count("unanswered")
		return false
	}
	text, token := withToken(text)
	if w.said(p, verb, text); text != didTake {
		if text != didRefuse {
			wait(ctx, 50*time.Millisecond) // the server is down, and busy enough
		}
		w.pause(ctx)
		return true
	}
	h := &holding{worker: w, on: p, lock: w.run.history.Taken(w.client(p), w.name, at)}
	h.lock.Token(token)
	h.lock.Together(limit)
	return h.hold(ctx) || h.on != p
}

// client returns the client number of the worker in a process.
func (w *worker) client(p *process) int { return p.place*w.run.perProcess() + w.id }

// withToken splits the answer to an acquisition.
func withToken(text string) (word string, token int64) {
	if word, digits, _ := strings.Cut(text, " "); word == didTake {
		token, _ = strconv.ParseInt(digits, 10, 64) // 0 if there is no token
		return word, token
	}
	return text, 0
}

// said counts an answer. An error is not a claim, but can still be a mistake.
func (w *worker) said(p *process, verb, text string) {
	switch text {
	case isLost, didWrite, isOutdone:
		w.run.told(verb + " " + text)
	case didTake:
		if verb != doTake && verb != doTry {
			text = verb + " " + text
		}
		w.run.told(text)
	case didRefuse, isAlive, didRelease, didExtend, didExport:
		w.run.told(text)
	case isMistaken:
		w.run.t.Errorf("process %d: %s %q: the lock was said to be lost, and nobody else had it", p.place, verb, w.name)
	default:
		w.run.failed(fmt.Sprintf("process %d: %s %q: %s", p.place, verb, w.name, text))
	}
}

// pause waits for up to 20 ms.
func (w *worker) pause(ctx context.Context) {
	wait(ctx, time.Duration(w.rand.Int64N(int64(20*time.Millisecond))))
}

// wait waits for a duration, or until ctx ends.
func wait(ctx context.Context, d time.Duration) { _ = backoff.Sleep(ctx, d) }
