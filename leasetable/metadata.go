package leasetable

import (
	"context"
	"fmt"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/bound"
	"github.com/sqllock/sqllock/internal/option"
)

// maxMetadata is what the column has room for.
const maxMetadata = 1024

// WithMetadata attaches metadata, any bytes but at most 1024 of them, to the name: Inspect, List and a *sqllock.HeldError show
// it while the name is held, and while it is kept after its release (WithHoldAtLeast). Every
// acquisition replaces what the one before attached, by nothing if it has none; [Locker.Adopt] alone leaves
// what it finds unless it is given another. A name that several hold together has none ([WithShared]).
func WithMetadata(metadata string) sqllock.Option {
	return option.Of("leasetable.WithMetadata", func(c *choice) { c.metadata = []byte(metadata) })
}

// SetMetadata replaces what is attached to the name, such as a note of progress, while this lease holds
// it. ErrLost and ErrExpired say that the lock is over. After any other error the metadata is what it was, or
// will be the new one: the answer may have been lost, or the statement still be under way.
func (le *Lease) SetMetadata(ctx context.Context, metadata string) error {
	err := checkMetadata(metadata)
	if err == nil {
		err = le.setMetadata(ctx, []byte(metadata))
	}
	if err != nil {
		return &sqllock.OpError{Op: "set the metadata of", Name: le.Name(), Err: err}
	}
	return nil
}

func (le *Lease) setMetadata(ctx context.Context, metadata []byte) error {
	return le.settled(ctx, func(ctx context.Context, ls *lease) error {
		var token int64
		err := retry(bound.WithValuesOf(le.locker.closing, ctx), releaseTimeout, func(ctx context.Context) (err error) {
			token, err = ls.store.claim(ctx, setMetadata, metadata, row{[]byte(le.Name())}, ls.id, le.token)
			return err
		})
		if err == nil && token == 0 {
			le.lose(errTaken)
		}
		return err
	})
}

func checkMetadata(metadata string) error {
	if len(metadata) > maxMetadata {
		return fmt.Errorf("leasetable: the metadata has %d bytes, the limit is %d", len(metadata), maxMetadata)
	}
	return nil
}

// bytesOf makes no metadata an empty value: for a database nil would be NULL.
func bytesOf(metadata []byte) []byte {
	if metadata == nil {
		return []byte{}
	}
	return metadata
}
