package locks

import (
	"slices"
	"time"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/console"
)

// live shows readings on a terminal, in place.
type live struct {
	*console.Screen
	seen    reading
	at      time.Time     // when seen was read, by this machine's clock
	failure error         // why there is no newer reading
	late    time.Duration // how old a reading may become before something is wrong
	lately  []happening   // the newest first
	ticker  *time.Ticker
}

// happening is a change and the time of the reading that showed it.
type happening struct {
	time.Time
	change
}

// remembered is how many events are kept, enough for a large terminal.
const remembered = 100

func openLive(w *watch) (*live, error) {
	s, err := w.OpenScreen()
	if err != nil {
		return nil, err
	}
	return &live{Screen: s, late: w.interval + 2*time.Second, ticker: time.NewTicker(time.Second)}, nil
}

// Close restores the terminal.
func (l *live) Close() {
	l.ticker.Stop()
	l.Screen.Close()
}

func (l *live) wishes() wishes { return wishes{l.ticker.C, l.Signals(), l.Quit()} }

func (l *live) show(seen reading, news []change) error {
	l.seen, l.at, l.failure = seen, time.Now(), nil
	for _, c := range news {
		if c.event != eventHeld {
			l.lately = slices.Insert(l.lately, 0, happening{seen.now, c})
		}
	}
	l.lately = l.lately[:min(len(l.lately), remembered)]
	return l.redraw()
}

func (l *live) trouble(err error) error {
	l.failure = err
	return l.redraw()
}

func (l *live) redraw() error {
	return l.Draw(view{l.seen, l.seen.now.Add(time.Since(l.at)), l.failure, l.late, l.lately}.rows)
}
