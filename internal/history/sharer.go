//go:build unix

package history

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sqllock/sqllock"
)

// Sharer is a Locker whose locks several clients can hold together.
type Sharer interface {
	sqllock.Locker
	Together(limit int) sqllock.Option // limit is at least 2, or Any
	Unfit(err error) bool              // reports whether others hold the name with an incompatible limit
}

// limit returns the limit of a worker's next request, or 0.
func (w *worker) limit() int {
	if limits := w.run.opts.Limits[w.name]; limits != nil {
		return limits[w.rand.IntN(len(limits))]
	}
	return 0
}

// withLimit encodes a name and a limit for a request.
func withLimit(name string, limit int) string {
	if limit <= 1 {
		return name
	}
	return fmt.Sprint(name, ",", limit)
}

// wanted decodes a name and a limit, and returns the option for the limit.
func (c *client) wanted(text string) (name string, opts []sqllock.Option) {
	name, digits, limited := strings.Cut(text, ",")
	if limited {
		limit, _ := strconv.Atoi(digits) // encoded by withLimit
		opts = append(opts, c.locker.(Sharer).Together(limit))
	}
	return name, opts
}

func (c *client) unfit(err error) bool {
	sharer, ok := c.locker.(Sharer)
	return ok && sharer.Unfit(err)
}
