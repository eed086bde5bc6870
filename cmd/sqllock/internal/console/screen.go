package console

import (
	"os"
	"os/signal"

	"golang.org/x/term"
)

// Escape sequences that every terminal knows. Lines must not wrap: wide characters can make one longer than it seems.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l" // the alternate screen, no cursor, no wrapping
	leaveScreen = "\x1b[m\x1b[?7h\x1b[?25h\x1b[?1049l"
	clearScreen = "\x1b[m\x1b[2J"
	clearRest   = "\x1b[K"
)

// Screen shows rows on the alternate screen of a terminal, and reports keys and signals.
type Screen struct {
	in, out *os.File    // in is nil if standard input is not a terminal
	before  *term.State // the state of in before
	colors  bool
	quit    chan struct{}
	signals chan os.Signal

	width, height int // at the last drawing
	shown         []Row
}

// OpenScreen prepares the terminal. The caller must close it.
func (c *Console) OpenScreen() (*Screen, error) {
	s := &Screen{colors: c.Getenv("NO_COLOR") == "", quit: make(chan struct{}), signals: make(chan os.Signal, 4)}
	s.out, _ = c.Stdout.(*os.File)
	if IsTerminal(c.Stdin) {
		s.in, _ = c.Stdin.(*os.File)
		before, err := term.GetState(int(s.in.Fd()))
		if err != nil {
			return nil, err
		}
		s.before = before
	}
	if err := s.enter(); err != nil {
		s.restore()
		return nil, err
	}
	if s.in != nil {
		go s.readKeys()
	}
	signal.Notify(s.signals, screenSignals()...)
	return s, nil
}

// enter prepares the terminal, and forces a complete drawing.
func (s *Screen) enter() error {
	if s.in != nil {
		if _, err := term.MakeRaw(int(s.in.Fd())); err != nil {
			return err
		}
	}
	s.width = 0
	_, err := s.out.WriteString(enterScreen)
	return err
}

// Quit returns a channel that is closed when the user presses a key that quits.
func (s *Screen) Quit() <-chan struct{} { return s.quit }

// Signals returns the channel of the signals after which Handle and Draw must be called.
func (s *Screen) Signals() <-chan os.Signal { return s.signals }

// Handle handles a signal. SIGTSTP gives the terminal back until the program is continued; other programs may have used
// the terminal meanwhile.
func (s *Screen) Handle(sig os.Signal) error {
	if !stops(sig) && !continues(sig) {
		return nil
	}
	if stops(sig) {
		s.restore()
		suspend()
	}
	return s.enter()
}

// Close restores the terminal.
func (s *Screen) Close() {
	signal.Stop(s.signals)
	s.restore()
}

// restore gives the terminal back. An error has no remedy: the terminal is gone.
func (s *Screen) restore() {
	_, _ = s.out.WriteString(leaveScreen)
	if s.in != nil {
		_ = term.Restore(int(s.in.Fd()), s.before)
	}
}

// readKeys closes quit when the user presses a key that quits. It returns only then, or with the program: the read of a
// terminal cannot be interrupted.
func (s *Screen) readKeys() {
	const ctrlC, ctrlD = '\x03', '\x04'
	key := make([]byte, 1)
	for {
		if _, err := s.in.Read(key); err != nil {
			return // without a terminal a signal follows
		}
		switch key[0] {
		case 'q', 'Q', ctrlC, ctrlD:
			close(s.quit)
			return
		}
	}
}

// Draw shows the rows that layout returns for the size of the terminal. It draws what has changed since the last
// drawing, or everything after a resize.
func (s *Screen) Draw(layout func(width, height int) []Row) error {
	resized, err := s.resize()
	if err != nil {
		return err
	}
	text := ""
	if resized {
		s.shown, text = nil, clearScreen
	}
	rows := layout(s.width, s.height)
	if !s.colors {
		for i := range rows {
			rows[i].Style = min(rows[i].Style, Bold)
		}
	}
	text += paint(s.shown, rows)
	s.shown = rows
	if text == "" {
		return nil
	}
	_, err = s.out.WriteString(text)
	return err
}

// resize reads the size of the terminal, and reports whether it has changed. A terminal that does not know its size, as
// on a serial line, reports 0.
func (s *Screen) resize() (bool, error) {
	width, height, err := term.GetSize(int(s.out.Fd()))
	if width <= 0 || height <= 0 {
		width, height = 80, 24
	}
	changed := width != s.width || height != s.height
	s.width, s.height = width, height
	return changed, err
}
