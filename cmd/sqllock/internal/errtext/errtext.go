// Package errtext formats errors for people: on one line, with the most informative part first.
package errtext

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"
)

// most bounds a line, in bytes, and end is how many of them are the last ones of a longer text, where advice stands. What a
// server says may have megabytes.
const most, end = 4000, 1000

// Line returns the text of an error on one line of limited length.
func Line(err error) string {
	text := err.Error()
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) {
		text = strings.Replace(text, connect.Error(), attempts(connect.Error()), 1)
	}
	return bounded(endings.ReplaceAllString(oneLine(text), "$1"))
}

// bounded leaves out the middle of a long text.
func bounded(text string) string {
	if len(text) <= most {
		return text
	}
	head, tail := runeStart(text, most-end), runeStart(text, len(text)-end)
	return fmt.Sprintf("%s… (%d bytes are left out) …%s", text[:head], tail-head, text[tail:])
}

// runeStart returns where the character begins that the byte at i belongs to.
func runeStart(text string, i int) int {
	for at := i; at > i-utf8.UTFMax; at-- {
		if utf8.RuneStart(text[at]) {
			return at
		}
	}
	return i // it is no text
}

// endings matches the error of a context together with the repetitions that contexts derived from it add.
var endings = regexp.MustCompile(`(context deadline exceeded|context canceled)(?:: context (?:deadline exceeded|canceled))+`)

// attempts sorts the lines in which pgx describes its attempts to connect, one for each address, with TLS and without.
// Answers of a server come first. Lines about refused TLS are left out if there is any other line.
func attempts(text string) string {
	head, rest, several := strings.Cut(text, "\n")
	if !several {
		return text
	}
	var answers, others, noTLS []string
	for line := range strings.Lines(rest) {
		line = strings.TrimSpace(line)
		list := &others
		switch {
		case line == "":
			continue
		case strings.Contains(line, "SQLSTATE"):
			list = &answers
		case strings.HasSuffix(line, "tls error: server refused TLS connection"):
			list = &noTLS
		}
		if !slices.Contains(*list, line) {
			*list = append(*list, line)
		}
	}
	all := append(answers, others...)
	if len(all) == 0 {
		all = noTLS
	}
	return head + " " + strings.Join(all, "; ")
}

// oneLine joins the lines of a text.
func oneLine(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.Join(strings.FieldsFunc(line, func(r rune) bool { return r == '\n' || r == '\r' || r == '\t' }), " ")
		if strings.TrimSpace(line) == "" {
			continue
		}
		if so := b.String(); strings.HasSuffix(so, ":") || strings.HasSuffix(so, ";") {
			b.WriteString(" ")
		} else if so != "" {
			b.WriteString("; ")
		}
		b.WriteString(line)
	}
	return b.String()
}
