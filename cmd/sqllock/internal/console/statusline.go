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
type StatusLine struct {
	w        io.Writer
	terminal bool

	mu    sync.Mutex
	shown bool // guarded by mu
}

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
	l.shown = true
	_, _ = io.WriteString(l.w, eraseLine+noWrap+text+wrap) // nothing depends on it
}

// Visible reports whether there is a line.
func (l *StatusLine) Visible() bool { return l.terminal }

// Write implements io.Writer. It erases the line first.
func (l *StatusLine) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shown {
		_, _ = io.WriteString(l.w, eraseLine) // nothing depends on it
	}
	l.shown = false
	return l.w.Write(text)
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
		_, _ = l.Write(nil) // it erases the line, and nothing depends on it
	}
}
