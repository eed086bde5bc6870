package leasetable

import (
	"context"
	"fmt"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/option"
)

// maxMetadata is the size of the column, in bytes.
const maxMetadata = 1024

// WithMetadata attaches metadata to the name: any bytes, at most 1024. Inspect, List and a *sqllock.HeldError show it
// while the name is held, and after a release during the minimum hold ([WithHoldAtLeast]). Every acquisition replaces
// the metadata of the one before, with nothing if it has none. Only [Locker.Adopt] leaves existing metadata as it is,
// unless it is given other metadata. A name that is shared or has permits has no metadata ([WithShared], [WithLimit]).
func WithMetadata(metadata string) sqllock.Option {
	return option.Of("leasetable.WithMetadata", func(c *choice) { c.metadata = []byte(metadata) })
}

// SetMetadata replaces the metadata of the name, such as a progress note, while this lease holds it. ErrLost and
// ErrExpired mean that the lock is over. After any other error the metadata is unchanged, or it has changed or still
// will: the answer may have been lost, or the statement may still be under way.
func (le *Lease) SetMetadata(ctx context.Context, metadata string) error {
	err := checkMetadata(metadata)
	if err == nil {
		err = le.held.SetMetadata(ctx, []byte(metadata))
	}
	return le.failed("set the metadata of", err)
}

func checkMetadata(metadata string) error {
	if len(metadata) > maxMetadata {
		return fmt.Errorf("the metadata has %d bytes, the limit is %d", len(metadata), maxMetadata)
	}
	return nil
}

// bytesOf returns an empty value for nil metadata: a database would store nil as NULL.
func bytesOf(metadata []byte) []byte {
	if metadata == nil {
		return []byte{}
	}
	return metadata
}
