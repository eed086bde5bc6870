package console

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Row is a line on the screen.
type Row struct {
	Text  string
	Style Style
}

// Style is how a row looks.
type Style int

// The styles, those without a color first.
const (
	Plain Style = iota
	Bold
	Yellow
	Red
)

var sgr = [...]string{Plain: "", Bold: "\x1b[1m", Yellow: "\x1b[33m", Red: "\x1b[31m"}

// paint returns the output that turns the rows before into the rows after. It is short, for the sake of slow lines.
func paint(before, after []Row) string {
	var b strings.Builder
	for i := range max(len(before), len(after)) {
		var old, now Row
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
		if old.Style == now.Style {
			same = commonASCII(old.Text, now.Text)
		}
		_, _ = fmt.Fprintf(&b, "\x1b[%d;%dH", i+1, same+1)
		if utf8.RuneCountInString(now.Text) < len(old.Text) { // the old text may be wider; no text has more columns than bytes
			b.WriteString(clearRest)
		}
		if now.Style != Plain {
			b.WriteString(sgr[now.Style] + now.Text[same:] + "\x1b[m")
		} else {
			b.WriteString(now.Text[same:])
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
