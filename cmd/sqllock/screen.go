package main

import (
	"os"
	"os/signal"
	"slices"
	"time"
)

// screen shows readings on a terminal, in place.
type screen struct {
	*tty
	colors  bool
	seen    reading
	at      time.Time     // when seen was read, by this machine's clock
	failure error         // why there is no newer reading
	late    time.Duration // how old a reading may become before something is wrong
	lately  []happening   // the newest first
	shown   []row

	ticker  *time.Ticker
	signals chan os.Signal
}

// happening is a change and the time of the reading that showed it.
type happening struct {
	time.Time
	change
}

// remembered is how many events are kept, enough for a large terminal.
const remembered = 100

func openScreen(w *watch) (*screen, error) {
	t, err := openTTY(w.Stdin, w.Stdout)
	if err != nil {
		return nil, err
	}
	s := &screen{tty: t, colors: w.getenv("NO_COLOR") == "", late: w.interval + 2*time.Second, ticker: time.NewTicker(time.Second), signals: make(chan os.Signal, 4)}
	signal.Notify(s.signals, screenSignals()...)
	return s, nil
}

func (s *screen) close() {
	s.ticker.Stop()
	signal.Stop(s.signals)
	s.tty.close()
}

func (s *screen) wishes() wishes { return wishes{s.ticker.C, s.signals, s.quit} }

func (s *screen) show(seen reading, news []change) error {
	s.seen, s.at, s.failure = seen, time.Now(), nil
	for _, c := range news {
		if c.event != eventHeld {
			s.lately = slices.Insert(s.lately, 0, happening{seen.now, c})
		}
	}
	s.lately = s.lately[:min(len(s.lately), remembered)]
	return s.redraw()
}

func (s *screen) trouble(err error) error {
	s.failure = err
	return s.redraw()
}

// redraw draws what has changed since the last drawing, or everything after a resize.
func (s *screen) redraw() error {
	resized, err := s.resize()
	if err != nil {
		return err
	}
	text := ""
	if resized {
		s.shown, text = nil, clearScreen
	}
	rows := view{s.seen, s.seen.now.Add(time.Since(s.at)), s.failure, s.late, s.lately}.rows(s.width, s.height)
	if !s.colors {
		for i := range rows {
			rows[i].style = min(rows[i].style, bold)
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
