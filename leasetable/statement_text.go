package leasetable

import (
	"encoding/hex"
	"fmt"
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
func (f *statementText) fill(text string, reqs []*request, number string) {
	req := reqs[0]
	for rest := text; rest != ""; {
		before, after, _ := strings.Cut(rest, "{")
		what, after, _ := strings.Cut(after, "}")
		f.text, rest = append(f.text, before...), after
		switch what {
		case "names":
			f.list(reqs, func(req *request) { f.bytes([]byte(req.name)) })
		case "match":
			if req.token == 0 {
				f.fill("name IN ({names})", reqs, "")
			} else {
				f.fill("(name, token) IN ({rows})", reqs, "")
			}
		case "rows":
			if len(reqs) == 1 { // repeat it: MariaDB turns a single row into two conditions, and uses no index for them
				reqs = []*request{req, req}
			}
			f.list(reqs, func(req *request) {
				f.write("(")
				f.bytes([]byte(req.name))
				f.write(",")
				f.number(req.token)
				f.write(")")
			})
		case "values":
			f.list(reqs, func(req *request) {
				f.write("(")
				f.bytes([]byte(req.name))
				f.write(",1,")
				f.bytes(req.id)
				f.write(",")
				f.bytes(req.metadata)
				f.write(",UTC_TIMESTAMP(6))")
			})
		case "lease":
			f.bytes(req.id)
		case "metadata":
			f.bytes(req.metadata)
		case "keep":
			f.number(req.minHoldUS())
		case "number":
			f.write(number)
		}
	}
}

func (f *statementText) list(reqs []*request, add func(req *request)) {
	for i, req := range reqs {
		if i > 0 {
			f.write(",")
		}
		add(req)
	}
}

func (f *statementText) write(text string) { f.text = append(f.text, text...) }

func (f *statementText) bytes(b []byte) {
	if f.marked { // in hex: see store.bind
		f.write("UNHEX(?)")
		f.args = append(f.args, hex.EncodeToString(b))
		return
	}
	f.write("x'")
	f.text = append(hex.AppendEncode(f.text, b), '\'')
}

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
