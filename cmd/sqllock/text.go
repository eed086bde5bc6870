package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sqllock/sqllock"
)

// unknown stands in a table for an unknown value.
const unknown = "-"

func since(t, now time.Time) string {
	if t.IsZero() {
		return unknown
	}
	return duration(now.Sub(t))
}

// where returns the host and process of a holder, or its address and session.
func where(h sqllock.Holder) string {
	place, id := h.Host, int64(h.PID)
	if h.Session != 0 {
		place, id = h.Address, h.Session
	}
	if id == 0 {
		return place
	}
	return place + "/" + strconv.FormatInt(id, 10)
}

func number(n int64) string {
	if n == 0 {
		return unknown
	}
	return strconv.FormatInt(n, 10)
}

// duration rounds a duration down to its two largest units: 12s, 3m12s, 5h3m, 2d5h.
func duration(d time.Duration) string {
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

// cell returns a text of other users for a table. It quotes a text that could affect a terminal, or be taken for
// something else.
func cell(text string) string {
	switch {
	case text == "":
		return unknown
	case text == unknown, strings.HasPrefix(text, `"`), strings.TrimSpace(text) != text, printable(text) != text:
		return strconv.Quote(text)
	}
	return text
}

// quoted returns a text of other users for a sentence.
func quoted(text string) string { return shortened(strconv.Quote(text), 100) }

// printable escapes unprintable characters, which could do anything to a terminal.
func printable(text string) string {
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

// shortened cuts a text to limit characters.
func shortened(text string, limit int) string {
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return text
}
