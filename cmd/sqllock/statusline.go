package main

import (
	"context"
	"io"
	"runtime"
	"sync"
	"time"
)

// statusLine is one line at the foot of a terminal that changes in place. What is written through
// it meanwhile stands above. Where there is no terminal there is no line.
type statusLine struct {
	w        io.Writer
	terminal bool

	mu    sync.Mutex
	shown bool // guarded by mu
}

const eraseLine = "\r\x1b[K"

// statusLine returns one on stderr. The consoles of Windows do not obey by themselves.
func (m *Main) statusLine() *statusLine {
	terminal := isTerminal(m.Stderr) && m.logFormat != logJSON && m.getenv("TERM") != "dumb" && runtime.GOOS != "windows"
	return &statusLine{w: m.Stderr, terminal: terminal}
}

// show puts a text there that has 80 columns at most. What is too wide all the same, with letters
// that take two, is cut by the terminal, which must not begin another line. A job in the background of a shell
// shows nothing: somebody types there.
func (l *statusLine) show(text string) {
	const noWrap, wrap = "\x1b[?7l", "\x1b[?7h"
	if !l.terminal || !inForeground(l.w) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shown = true
	_, _ = io.WriteString(l.w, eraseLine+noWrap+text+wrap) // nothing depends on it
}

// erase takes it away.
func (l *statusLine) erase() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.eraseLocked()
}

func (l *statusLine) eraseLocked() {
	if l.shown {
		_, _ = io.WriteString(l.w, eraseLine) // nothing depends on it
	}
	l.shown = false
}

// Write implements io.Writer.
func (l *statusLine) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.eraseLocked()
	return l.w.Write(text)
}

// meanwhile calls f now and then, the first time after a while, until the function is called that it
// returns, which erases the line.
func (l *statusLine) meanwhile(ctx context.Context, first, pause time.Duration, f func(context.Context)) (stop func()) {
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
		l.erase()
	}
}
