package console

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sqllock/sqllock"
)

// Unknown stands in a table for an unknown value.
const Unknown = "-"

// Since returns how long ago t was.
func Since(t, now time.Time) string {
	if t.IsZero() {
		return Unknown
	}
	return Duration(now.Sub(t))
}

// Where returns the host and process of a holder, or its address and session.
func Where(h sqllock.Holder) string {
	place, id := h.Host, int64(h.PID)
	if h.Session != 0 {
		place, id = h.Address, h.Session
	}
	if id == 0 {
		return place
	}
	return place + "/" + strconv.FormatInt(id, 10)
}

// Duration rounds a duration down to its two largest units: 12s, 3m12s, 5h3m, 2d5h.
func Duration(d time.Duration) string {
	const day = 24 * time.Hour
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
}

// Cell returns a text of other users for a table. It quotes a text that could affect a terminal, or be taken for
// something else.
func Cell(text string) string {
	switch {
	case text == "":
		return Unknown
	case text == Unknown, strings.HasPrefix(text, `"`), strings.TrimSpace(text) != text, Printable(text) != text:
		return strconv.Quote(text)
	}
	return text
}

// Item returns a text of other users for a list with commas. It quotes what Cell does, and a text with a comma.
func Item(text string) string {
	if strings.Contains(text, ",") {
		return strconv.Quote(text)
	}
	return Cell(text)
}

// Printable escapes unprintable characters, which could do anything to a terminal.
func Printable(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if strconv.IsPrint(r) && (r != utf8.RuneError || size > 1) {
			b.WriteString(text[:size])
		} else {
			b.WriteString(strings.Trim(strconv.Quote(text[:size]), `"`))
		}
		text = text[size:]
	}
	return b.String()
}

// Shortened cuts a text to limit characters.
func Shortened(text string, limit int) string {
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return text
}
