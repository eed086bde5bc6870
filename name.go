package sqllock

import (
	"fmt"
	"strconv"
	"strings"
)

// quote makes a name printable and keeps error texts short.
func quote(name string) string {
	const shown = 64
	if len(name) <= shown {
		return strconv.Quote(name)
	}
	return fmt.Sprintf("%q… (%d bytes)", name[:shown], len(name))
}

// unambiguous returns a text that a holder has chosen, quoted if it would end its place in a list with commas or on a line.
func unambiguous(text string) string {
	odd := func(r rune) bool { return r == ',' || r == '"' || !strconv.IsPrint(r) }
	if strings.ContainsFunc(text, odd) || strings.TrimSpace(text) != text || strings.ToValidUTF8(text, "") != text {
		return strconv.Quote(text)
	}
	return text
}
