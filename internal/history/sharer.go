//go:build unix

package history

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sqllock/sqllock"
)

// Sharer is a Locker whose locks several can hold together.
type Sharer interface {
	sqllock.Locker
	Together(limit int) sqllock.Option // limit is at least 2, or Any
	Unfit(err error) bool              // others hold the name with another limit
}

// limit is what a worker asks for, or 0.
func (w *worker) limit() int {
	if limits := w.run.opts.Limits[w.name]; limits != nil {
		return limits[w.rand.IntN(len(limits))]
	}
	return 0
}

// withLimit makes what a child is to take of a name and a limit.
func withLimit(name string, limit int) string {
	if limit <= 1 {
		return name
	}
	return fmt.Sprint(name, ",", limit)
}

// wanted is the opposite of withLimit, with options for the limit.
func (c *client) wanted(text string) (name string, opts []sqllock.Option) {
	name, digits, limited := strings.Cut(text, ",")
	if limited {
		limit, _ := strconv.Atoi(digits) // of withLimit
		opts = append(opts, c.locker.(Sharer).Together(limit))
	}
	return name, opts
}

func (c *client) unfit(err error) bool {
	sharer, ok := c.locker.(Sharer)
	return ok && sharer.Unfit(err)
}
