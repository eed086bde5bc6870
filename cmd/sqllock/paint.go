package main

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

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
