package sqllock

import (
	"fmt"
	"strconv"
)

// maxNameBytes keeps a name inside the index rows of every database: PostgreSQL refuses
// index rows over 2704 bytes, InnoDB keys over 3072.
const maxNameBytes = 1024

// CheckName reports, as an error that matches ErrName, whether name cannot be a lock name.
// A name is 1 to 1024 bytes, any bytes, compared byte by byte on every backend: there is no
// folding of case, no trimming and no Unicode normalisation.
func CheckName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: it is empty", ErrName)
	case len(name) > maxNameBytes:
		return fmt.Errorf("%w: it has %d bytes, the limit is %d; use a hash of it", ErrName, len(name), maxNameBytes)
	}
	return nil
}

// quote makes a name printable and keeps error texts short.
func quote(name string) string {
	const shown = 64
	if len(name) <= shown {
		return strconv.Quote(name)
	}
	return fmt.Sprintf("%q… (%d bytes)", name[:shown], len(name))
}
