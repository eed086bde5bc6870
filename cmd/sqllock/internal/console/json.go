package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
)

// FormatVersion is the version of the JSON that commands print. It rises when a field changes its meaning or goes.
const FormatVersion = 1

// WriteJSON writes a struct as a JSON object that is safe on a terminal, on one line unless there is an indent. The
// first field of the object is format_version.
func WriteJSON(w io.Writer, object any, indent string) error {
	var fields strings.Builder
	encoder := json.NewEncoder(&fields)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(object); err != nil {
		return err
	}
	text := fmt.Sprintf(`{"format_version":%d,%s`, FormatVersion, strings.TrimPrefix(fields.String(), "{"))
	if indent != "" {
		var b bytes.Buffer
		if err := json.Indent(&b, []byte(text), "", indent); err != nil {
			return err
		}
		text = b.String()
	}
	_, err := io.WriteString(w, printableJSON(text))
	return err
}

// printableJSON escapes characters that JSON leaves alone but a terminal may obey, such as control characters above
// ASCII. They can only occur inside strings.
func printableJSON(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r == '\n' || strconv.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			_, _ = fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}
