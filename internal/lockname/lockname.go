// Package lockname says what the name of a lock can be.
package lockname

import (
	"fmt"

	"github.com/sqllock/sqllock"
)

// maxBytes keeps a name inside the index rows of every database: PostgreSQL refuses
// index rows over 2704 bytes, InnoDB keys over 3072.
const maxBytes = 1024

// Check reports, as an error that matches sqllock.ErrName, whether name cannot be a lock name.
// A name is 1 to 1024 bytes, any bytes, compared byte by byte on every backend: there is no
// folding of case, no trimming and no Unicode normalisation.
func Check(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: it is empty", sqllock.ErrName)
	case len(name) > maxBytes:
		return fmt.Errorf("%w: it has %d bytes, the limit is %d; use a hash of it", sqllock.ErrName, len(name), maxBytes)
	}
	return nil
}
