package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// Escape sequences that every terminal knows. A line that is longer than it seems, because of wide
// characters, must not wrap.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l" // another screen, no cursor, no wrapping
	leaveScreen = "\x1b[m\x1b[?7h\x1b[?25h\x1b[?1049l"
	clearScreen = "\x1b[m\x1b[2J"
	clearRest   = "\x1b[K"
)

// tty is the terminal while it has another screen and gives single keys.
type tty struct {
	in, out *os.File    // in is nil if keys come from elsewhere
	before  *term.State // of in
	quit    chan struct{}

	width, height int // as the screen was drawn last
}

// openTTY prepares the terminal. Close it, whatever happens.
func openTTY(in io.Reader, out io.Writer) (*tty, error) {
	t := &tty{quit: make(chan struct{})}
	t.out, _ = out.(*os.File)
	if isTerminal(in) {
		t.in, _ = in.(*os.File)
		before, err := term.GetState(int(t.in.Fd()))
		if err != nil {
			return nil, err
		}
		t.before = before
	}
	if err := t.enter(); err != nil {
		t.close()
		return nil, err
	}
	if t.in != nil {
		go t.readKeys()
	}
	return t, nil
}

// enter prepares the terminal, and has all of the screen drawn.
func (t *tty) enter() error {
	if t.in != nil {
		if _, err := term.MakeRaw(int(t.in.Fd())); err != nil {
			return err
		}
	}
	t.width = 0
	_, err := t.out.WriteString(enterScreen)
	return err
}

// heard does what a signal of screenSignals asks for, before the screen is drawn again: a stop gives the
// terminal back until the program is continued, and whoever continues it may have used the terminal.
func (t *tty) heard(sig os.Signal) error {
	if !stops(sig) && !continues(sig) {
		return nil
	}
	if stops(sig) {
		t.close()
		suspend()
	}
	return t.enter()
}

// close leaves the terminal as it was. There is nothing to do about an error: it is gone.
func (t *tty) close() {
	_, _ = t.out.WriteString(leaveScreen)
	if t.in != nil {
		_ = term.Restore(int(t.in.Fd()), t.before)
	}
}

// readKeys closes quit when the user has seen enough. It ends only then, or with the program: a
// read of a terminal cannot be interrupted.
func (t *tty) readKeys() {
	const ctrlC, ctrlD = '\x03', '\x04'
	key := make([]byte, 1)
	for {
		if _, err := t.in.Read(key); err != nil {
			return // without a terminal a signal follows
		}
		switch key[0] {
		case 'q', 'Q', ctrlC, ctrlD:
			close(t.quit)
			return
		}
	}
}

// resize takes note of the size, and reports whether it is another one. A terminal that does not
// know its size, as on a serial line, says 0.
func (t *tty) resize() (bool, error) {
	width, height, err := term.GetSize(int(t.out.Fd()))
	if width <= 0 || height <= 0 {
		width, height = 80, 24
	}
	changed := width != t.width || height != t.height
	t.width, t.height = width, height
	return changed, err
}

// row is a line on the screen.
type row struct {
	text  string
	style style
}

type style int

// The styles, those without a color first.
const (
	plainStyle style = iota
	bold
	yellow
	red
)

var sgr = [...]string{plainStyle: "", bold: "\x1b[1m", yellow: "\x1b[33m", red: "\x1b[31m"}

// paint returns what makes the rows of a screen from those that it shows: little, for a slow line.
func paint(before, after []row) string {
	var b strings.Builder
	for i := range max(len(before), len(after)) {
		var old, now row
		if i < len(before) {
			old = before[i]
		}
		if i < len(after) {
			now = after[i]
		}
		if old == now {
			continue
		}
		same := 0
		if old.style == now.style {
			same = commonASCII(old.text, now.text)
		}
		_, _ = fmt.Fprintf(&b, "\x1b[%d;%dH", i+1, same+1)
		if utf8.RuneCountInString(now.text) < len(old.text) { // what was there may be wider: no text has more columns than bytes
			b.WriteString(clearRest)
		}
		if now.style != plainStyle {
			b.WriteString(sgr[now.style] + now.text[same:] + "\x1b[m")
		} else {
			b.WriteString(now.text[same:])
		}
	}
	return b.String()
}

// commonASCII is how many characters two texts begin with alike that are a column wide for sure.
func commonASCII(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] && a[n] < utf8.RuneSelf {
		n++
	}
	return n
}
