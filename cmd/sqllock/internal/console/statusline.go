package console

import (
	"context"
	"io"
	"runtime"
	"sync"
	"time"
)

// StatusLine is one line at the bottom of a terminal that changes in place. Text written through it appears above the
// line. Without a terminal there is no line.
//
// A goroutine writes. So nobody waits for a terminal that takes no output (Ctrl-S), or for a pipe that nobody reads,
// except Flush.
type StatusLine struct {
	w        io.Writer
	terminal bool

	mu      sync.Mutex
	pending []string      // guarded by mu: what the goroutine has not begun to write; each is one write, so a line stays whole
	shown   bool          // guarded by mu: the line is there after that
	idle    chan struct{} // guarded by mu: closed when all is written; nil: all is written
}

// maxPending is how many texts wait for a reader. More are dropped.
const maxPending = 10_000

// soon is longer than a terminal, or a pipe with a reader, takes for all that is pending.
const soon = 200 * time.Millisecond

const eraseLine = "\r\x1b[K"

// StatusLine returns a status line on stderr. Windows consoles do not obey escape sequences by default.
func (c *Console) StatusLine() *StatusLine {
	terminal := IsTerminal(c.Stderr) && c.LogFormat != LogJSON && c.Getenv("TERM") != "dumb" && runtime.GOOS != "windows"
	return &StatusLine{w: c.Stderr, terminal: terminal}
}

// Show shows a text of up to 80 columns. The terminal must not wrap it: it cuts a text that is too wide because of
// letters that take two columns. A background job of a shell shows nothing, because the user types there.
func (l *StatusLine) Show(text string) {
	const noWrap, wrap = "\x1b[?7l", "\x1b[?7h"
	if !l.terminal || !inForeground(l.w) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shown && l.idle != nil {
		return // the line before is still being written
	}
	l.shown = true
	l.queue(eraseLine + noWrap + text + wrap)
}

// Visible reports whether there is a line.
func (l *StatusLine) Visible() bool { return l.terminal }

// Write implements io.Writer. It erases the line first. Its error is always nil.
func (l *StatusLine) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := string(text)
	if l.shown {
		line = eraseLine + line
	}
	l.shown = false
	l.queue(line)
	return len(text), nil
}

// queue makes the goroutine write this. The caller has locked mu.
func (l *StatusLine) queue(text string) {
	if text == "" || len(l.pending) >= maxPending {
		return
	}
	l.pending = append(l.pending, text)
	if l.idle == nil {
		l.idle = make(chan struct{})
		go l.writePending()
	}
}

// writePending writes until nothing is pending.
func (l *StatusLine) writePending() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.pending) > 0 {
		text := l.pending[0]
		l.pending = l.pending[1:]
		l.mu.Unlock()
		_, _ = io.WriteString(l.w, text) // a failure cannot be reported anywhere else
		l.mu.Lock()
	}
	close(l.idle)
	l.idle = nil
}

// Flush waits until all is written.
func (l *StatusLine) Flush() { <-l.flushed() }

// FlushSoon is like Flush, but does not wait for a terminal or a pipe that takes no output.
func (l *StatusLine) FlushSoon() {
	select {
	case <-l.flushed():
	case <-time.After(soon):
	}
}

// flushed returns a channel that is closed when all is written.
func (l *StatusLine) flushed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.idle != nil {
		return l.idle
	}
	idle := make(chan struct{})
	close(idle)
	return idle
}

// Meanwhile calls f periodically, the first time after first, until the returned function is called. That function also
// erases the line.
func (l *StatusLine) Meanwhile(ctx context.Context, first, pause time.Duration, f func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		timer := time.NewTimer(first)
		defer timer.Stop()
		for {
			select {
			case <-timer.C:
				f(ctx)
				timer.Reset(pause)
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		cancel()
		<-done
		_, _ = l.Write(nil) // it erases the line
		l.FlushSoon()
	}
}
