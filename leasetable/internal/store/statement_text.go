package store

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// statementText builds a statement for many names. The names are part of the text or, if it is marked, arguments for
// its placeholders.
type statementText struct {
	text   []byte
	marked bool
	args   []any
}

// fill appends text and replaces its parts in braces by the values of reqs, which are alike, or by number.
func (f *statementText) fill(text string, reqs []*Request, number string) {
	req := reqs[0]
	for rest := text; rest != ""; {
		before, after, _ := strings.Cut(rest, "{")
		what, after, _ := strings.Cut(after, "}")
		f.text, rest = append(f.text, before...), after
		switch what {
		case "names":
			f.list(reqs, func(req *Request) { f.bytes([]byte(req.Name)) })
		case "match":
			if req.Token == 0 {
				f.fill("name IN ({names})", reqs, "")
			} else {
				f.fill("(name, token) IN ({rows})", reqs, "")
			}
		case "rows":
			if len(reqs) == 1 { // repeat it: MariaDB turns a single row into two conditions, and uses no index for them
				reqs = []*Request{req, req}
			}
			f.list(reqs, func(req *Request) {
				f.write("(")
				f.bytes([]byte(req.Name))
				f.write(",")
				f.number(req.Token)
				f.write(")")
			})
		case "values":
			f.list(reqs, func(req *Request) {
				f.write("(")
				f.bytes([]byte(req.Name))
				f.write(",1,")
				f.bytes(req.ID)
				f.write(",")
				f.bytes(req.Metadata)
				f.write(",UTC_TIMESTAMP(6))")
			})
		case "lease":
			f.bytes(req.ID)
		case "metadata":
			f.bytes(req.Metadata)
		case "keep":
			f.number(req.minHoldUS())
		case "number":
			f.write(number)
		}
	}
}

func (f *statementText) list(reqs []*Request, add func(req *Request)) {
	for i, req := range reqs {
		if i > 0 {
			f.write(",")
		}
		add(req)
	}
}

func (f *statementText) write(text string) { f.text = append(f.text, text...) }

// number writes a number, or NULL for nil.
func (f *statementText) number(n any) {
	switch {
	case f.marked:
		f.write("?")
		f.args = append(f.args, n)
	case n == nil:
		f.write("NULL")
	default:
		f.text = fmt.Append(f.text, n)
	}
}

func (f *statementText) bytes(b []byte) {
	if f.marked { // in hex: see database.bind
		f.write("UNHEX(?)")
		f.args = append(f.args, hex.EncodeToString(b))
		return
	}
	f.write("x'")
	f.text = append(hex.AppendEncode(f.text, b), '\'')
}

// few is the number of names of a prepared statement. Copies of the last name stand in for missing ones.
const few = 16

// fill returns a statement for reqs, which are alike.
func (s *database) fill(st Statement, reqs []*Request) *statementText {
	f := &statementText{marked: len(reqs) <= few && st != insertMany}
	if f.marked {
		reqs = slices.Concat(reqs, slices.Repeat(reqs[len(reqs)-1:], few-len(reqs)))
	}
	f.fill(s.Texts[st].Text, reqs, "")
	return f
}

// TextFor returns the text of a statement for reqs, which are alike. The number identifies this run, if the text notes
// it.
func (s *database) TextFor(st Statement, reqs []*Request, number string) string {
	var f statementText
	f.fill(s.Texts[st].Text, reqs, number)
	return string(f.text)
}
