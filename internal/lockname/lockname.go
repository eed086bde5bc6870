// Package lockname validates the names of locks.
package lockname

import (
	"fmt"

	"github.com/sqllock/sqllock"
)

// maxBytes keeps a name within the index limits of every database: PostgreSQL refuses index rows over 2704 bytes,
// InnoDB keys over 3072.
const maxBytes = 1024

// Check returns an error that matches sqllock.ErrName if name is not a valid lock name. A name is 1 to 1024 bytes, any
// bytes, compared byte by byte on every backend, without case folding, trimming or Unicode normalisation.
func Check(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: it is empty", sqllock.ErrName)
	case len(name) > maxBytes:
		return fmt.Errorf("%w: it has %d bytes, the limit is %d; use a hash of it", sqllock.ErrName, len(name), maxBytes)
	}
	return nil
}
