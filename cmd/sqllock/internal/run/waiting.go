package run

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/console"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/database"
)

// Times in a wait.
const (
	firstLook = 200 * time.Millisecond // a shorter wait is not reported
	lookEvery = 5 * time.Second        // interval between two queries for the holder
	tellEvery = time.Second
)

// waiting is a wait for a lock, with what is known about the holder.
type waiting struct {
	*run
	db    *database.Database
	l     database.Locker
	until time.Time // when the wait ends; zero: never

	silent bool           // the last query failed, and that was reported
	looked time.Time      // when the holder was last queried
	holder sqllock.Holder // the holder at that time; zero: none, or unknown
	ahead  time.Duration  // how far the database's clock, which records holders, is ahead of ours
}

// tellWaiting reports whom the wait is for, if the user wants to know, until the returned function is called.
func (r *run) tellWaiting(ctx context.Context, db *database.Database, l database.Locker) (stop func()) {
	if r.wait.limit == 0 && !r.wait.forever || !r.verbose && !r.line.Visible() {
		return func() {}
	}
	w := &waiting{run: r, db: db, l: l}
	if r.wait.ends() {
		w.until = time.Now().Add(r.wait.limit)
	}
	return r.line.Meanwhile(ctx, firstLook, tellEvery, w.tell)
}

func (w *waiting) tell(ctx context.Context) {
	if time.Since(w.looked) >= lookEvery {
		w.look(ctx)
	}
	w.line.Show(w.text(time.Now()))
}

// look queries the holder, and the time of the database.
func (w *waiting) look(ctx context.Context) {
	w.looked = time.Now()
	asking, cancel := context.WithTimeout(ctx, database.InspectTimeout)
	defer cancel()
	holder, _, err := w.l.Holder(asking, w.name)
	holder = database.Unsigned(w.name, holder)
	if err == nil {
		var now time.Time
		now, err = w.db.Now(asking)
		w.ahead = time.Until(now)
	}
	if ctx.Err() != nil {
		return
	}
	switch { // an outage may be long: its begin and its end are reported
	case err != nil && !w.silent:
		w.log.Warn("cannot ask who holds the lock", slog.String("lock", w.name), slog.Any("err", err))
	case err == nil && w.silent:
		w.log.Info("the database answers again", slog.String("lock", w.name))
	}
	w.silent = err != nil
	if err == nil && holder != (sqllock.Holder{}) && !sameHolder(holder, w.holder) {
		w.log.Info("waiting for the lock", slog.String("lock", w.name), slog.String("kind", w.kind), holderAttr(holder))
	}
	w.holder = holder
}

func sameHolder(a, b sqllock.Holder) bool {
	return a.Token == b.Token && a.Session == b.Session && a.PID == b.PID && a.Owner == b.Owner
}

// text returns the status at a time, in at most 80 columns.
func (w *waiting) text(at time.Time) string {
	const columns = 79 // one column is for the cursor
	now := at.Add(w.ahead)
	name, who, rest := console.Cell(w.name), "somebody", ""
	switch h := w.holder; {
	case isKept(h):
		who = "kept (--at-least)"
	case h.Owner != "" || console.Where(h) != "":
		who = console.Item(h.Owner) + ", " + console.Item(console.Where(h))
	}
	if !w.holder.Since.IsZero() {
		rest += ", held " + console.Since(w.holder.Since, now)
	}
	if !w.holder.Until.IsZero() {
		rest += ", " + console.Duration(w.holder.Until.Sub(now)) + " left"
	}
	if !w.until.IsZero() {
		rest += "; gives up in " + console.Duration(w.until.Sub(at))
	}
	room := columns - len("waiting for : "+rest)
	name = console.Shortened(name, max(room/3, room-len([]rune(who))))
	who = console.Shortened(who, room-len([]rune(name)))
	return fmt.Sprintf("waiting for %s: %s%s", name, who, rest)
}

// holderAttr returns the known fields of a holder, named as in the JSON of other commands.
func holderAttr(h sqllock.Holder) slog.Attr {
	var known []any
	add := func(is bool, a slog.Attr) {
		if is {
			known = append(known, a)
		}
	}
	add(h.Owner != "", slog.String("owner", h.Owner))
	add(h.Host != "", slog.String("host", h.Host))
	add(h.PID != 0, slog.Int("pid", h.PID))
	add(h.Session != 0, slog.Int64("session", h.Session))
	add(h.Address != "", slog.String("address", h.Address))
	add(h.Token != 0, slog.Int64("token", h.Token))
	add(!h.Since.IsZero(), slog.Time("since", h.Since))
	add(!h.Until.IsZero(), slog.Time("until", h.Until))
	return slog.Group("holder", known...)
}
