package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// Escape sequences that every terminal knows. Lines must not wrap: wide characters can make one longer than it seems.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l" // the alternate screen, no cursor, no wrapping
	leaveScreen = "\x1b[m\x1b[?7h\x1b[?25h\x1b[?1049l"
	clearScreen = "\x1b[m\x1b[2J"
	clearRest   = "\x1b[K"
)

// tty is a terminal that shows the alternate screen and returns single keys.
type tty struct {
	in, out *os.File    // in is nil if standard input is not a terminal
	before  *term.State // the state of in before
	quit    chan struct{}

	width, height int // at the last drawing
}

// openTTY prepares the terminal. The caller must close it.
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

// enter prepares the terminal, and forces a complete drawing.
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

// heard handles a signal of screenSignals, before the screen is drawn again. SIGTSTP gives the terminal back until the
// program is continued; other programs may have used the terminal meanwhile.
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

// close restores the terminal. An error has no remedy: the terminal is gone.
func (t *tty) close() {
	_, _ = t.out.WriteString(leaveScreen)
	if t.in != nil {
		_ = term.Restore(int(t.in.Fd()), t.before)
	}
}

// readKeys closes quit when the user presses a key that quits. It returns only then, or with the program: the read of a
// terminal cannot be interrupted.
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

// resize reads the size of the terminal, and reports whether it has changed. A terminal that does not know its size, as
// on a serial line, reports 0.
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

// paint returns the output that turns the rows before into the rows after. It is short, for the sake of slow lines.
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
		if utf8.RuneCountInString(now.text) < len(old.text) { // the old text may be wider; no text has more columns than bytes
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

// commonASCII returns the length of the common prefix of ASCII characters, which are one column wide for sure.
func commonASCII(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] && a[n] < utf8.RuneSelf {
		n++
	}
	return n
}
