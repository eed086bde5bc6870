package leasetable

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// filling is a statement for many names, with these in its text, or with marks that its arguments stand for.
type filling struct {
	text   []byte
	marked bool
	args   []any
}

func (f *filling) fill(text string, parts []*part, number string) {
	p := parts[0]
	for rest := text; rest != ""; {
		before, after, _ := strings.Cut(rest, "{")
		what, after, _ := strings.Cut(after, "}")
		f.text, rest = append(f.text, before...), after
		switch what {
		case "names":
			f.list(parts, func(p *part) { f.bytes([]byte(p.name)) })
		case "match":
			if p.token == 0 {
				f.fill("name IN ({names})", parts, "")
			} else {
				f.fill("(name, token) IN ({rows})", parts, "")
			}
		case "rows":
			if len(parts) == 1 { // once more: of a single row MariaDB makes two conditions, and uses no index for them
				parts = []*part{p, p}
			}
			f.list(parts, func(p *part) {
				f.write("(")
				f.bytes([]byte(p.name))
				f.write(",")
				f.number(p.token)
				f.write(")")
			})
		case "values":
			f.list(parts, func(p *part) {
				f.write("(")
				f.bytes([]byte(p.name))
				f.write(",1,")
				f.bytes(p.id)
				f.write(",")
				f.bytes(p.metadata)
				f.write(",UTC_TIMESTAMP(6))")
			})
		case "lease":
			f.bytes(p.id)
		case "metadata":
			f.bytes(p.metadata)
		case "keep":
			f.number(p.keepUS())
		case "number":
			f.write(number)
		}
	}
}

func (f *filling) list(parts []*part, add func(p *part)) {
	for i, p := range parts {
		if i > 0 {
			f.write(",")
		}
		add(p)
	}
}

func (f *filling) write(text string) { f.text = append(f.text, text...) }

func (f *filling) bytes(b []byte) {
	if f.marked { // in hex: see wire
		f.write("UNHEX(?)")
		f.args = append(f.args, hex.EncodeToString(b))
		return
	}
	f.write("x'")
	f.text = append(hex.AppendEncode(f.text, b), '\'')
}

// number writes a number, or nil for NULL.
func (f *filling) number(n any) {
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
