package page

import (
	"fmt"
	"strings"

	"github.com/sqllock/sqllock/bench/internal/lock"
	"github.com/sqllock/sqllock/bench/internal/result"
)

// picture is a figure of all servers that package draw has drawn.
func picture(name string) string { return fmt.Sprintf("![%[1]s](performance/%[1]s.svg)\n\n", name) }

// pictures are the figures of a scenario, one for each server, two in a row.
func pictures(r *result.Result, scenario string) string {
	text := "| | |\n|---|---|\n"
	n := 0
	for _, e := range lock.Engines() {
		if _, ok := r.Servers[string(e)]; !ok || e == lock.Etcd { // which is drawn with Redis
			continue
		}
		text += fmt.Sprintf("| ![%s](performance/%s) ", e, File(scenario, e))
		if n++; n%2 == 0 {
			text += "|\n"
		}
	}
	if n%2 == 1 {
		text += "| |\n"
	}
	return text + "\n"
}

// File returns the name of the file with the figure of a scenario on a server.
func File(scenario string, e lock.Engine) string {
	return strings.ReplaceAll(scenario, " ", "-") + "-" + strings.ToLower(string(e)) + ".svg"
}
