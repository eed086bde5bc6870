package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/sqllock/sqllock"
)

// Moments in a wait.
const (
	firstLook = 200 * time.Millisecond // a shorter wait is not worth a word
	lookEvery = 5 * time.Second        // between two questions who holds the lock
	tellEvery = time.Second
)

// waiting is a wait for a lock, and what is known of the holder who is waited for.
type waiting struct {
	*run
	db    *database
	l     locker
	until time.Time // when the wait is over; zero: never

	looked time.Time      // when the holder was last asked for
	holder sqllock.Holder // as it was then; zero: nobody, or not known
	ahead  time.Duration  // of the clock of the database, by which holders are recorded, to ours
}

// tellWaiting says for whom the lock is waited for, unless nobody wants to know, until the function
// is called that it returns.
func (r *run) tellWaiting(ctx context.Context, db *database, l locker) (stop func()) {
	if r.wait.limit == 0 && !r.wait.forever || !r.verbose && !r.line.terminal {
		return func() {}
	}
	w := &waiting{run: r, db: db, l: l}
	if r.wait.ends() {
		w.until = time.Now().Add(r.wait.limit)
	}
	return r.line.meanwhile(ctx, firstLook, tellEvery, w.tell)
}

func (w *waiting) tell(ctx context.Context) {
	if time.Since(w.looked) >= lookEvery {
		w.look(ctx)
	}
	w.line.show(w.text(time.Now()))
}

// look asks who holds the lock, and what the database takes for the time.
func (w *waiting) look(ctx context.Context) {
	w.looked = time.Now()
	asking, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	holder, _, err := w.l.holder(asking, w.name)
	holder = unsigned(w.name, holder)
	if err == nil {
		var now time.Time
		now, err = w.db.now(asking)
		w.ahead = time.Until(now)
	}
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		w.log.Warn("cannot ask who holds the lock", slog.String("lock", w.name), slog.Any("err", err))
	case holder != (sqllock.Holder{}) && !sameHolder(holder, w.holder):
		w.log.Info("waiting for the lock", slog.String("lock", w.name), slog.String("kind", w.kind), holderAttr(holder))
	}
	w.holder = holder
}

func sameHolder(a, b sqllock.Holder) bool {
	return a.Token == b.Token && a.Session == b.Session && a.PID == b.PID && a.Owner == b.Owner
}

// text is what there is to say at a time, in 80 columns.
func (w *waiting) text(at time.Time) string {
	const columns = 79 // and one for the cursor
	now := at.Add(w.ahead)
	name, who, rest := cell(w.name), "somebody", ""
	switch h := w.holder; {
	case isKept(h):
		who = "kept (--at-least)"
	case h.Owner != "" || where(h) != "":
		who = cell(h.Owner) + ", " + cell(where(h))
	}
	if !w.holder.Since.IsZero() {
		rest += ", held " + since(w.holder.Since, now)
	}
	if !w.holder.Until.IsZero() {
		rest += ", " + duration(w.holder.Until.Sub(now)) + " left"
	}
	if !w.until.IsZero() {
		rest += "; gives up in " + duration(w.until.Sub(at))
	}
	room := columns - len("waiting for : "+rest)
	name = shortened(name, max(room/3, room-len([]rune(who))))
	who = shortened(who, room-len([]rune(name)))
	return fmt.Sprintf("waiting for %s: %s%s", name, who, rest)
}
