package sqllock

import (
	"fmt"
	"strconv"
)

// quote makes a name printable and keeps error texts short.
func quote(name string) string {
	const shown = 64
	if len(name) <= shown {
		return strconv.Quote(name)
	}
	return fmt.Sprintf("%q… (%d bytes)", name[:shown], len(name))
}
