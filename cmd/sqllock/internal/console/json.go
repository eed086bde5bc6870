package console

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
)

// WriteJSON writes a value as JSON that is safe on a terminal, on one line unless there is an indent.
func WriteJSON(w io.Writer, value any, indent string) error {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	_, err := io.WriteString(w, printableJSON(b.String()))
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
