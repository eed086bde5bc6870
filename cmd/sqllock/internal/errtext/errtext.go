// Package errtext formats errors for people: on one line, with the most informative part first.
package errtext

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Line returns the text of an error on one line.
func Line(err error) string {
	text := err.Error()
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) {
		text = strings.Replace(text, connect.Error(), attempts(connect.Error()), 1)
	}
	return endings.ReplaceAllString(oneLine(text), "$1")
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
