package main

import "strings"

// help joins the parts of a help text.
func help(parts ...string) string {
	return strings.TrimRight(strings.Join(parts, "\n\n"), "\n")
}
