package run

import (
	"errors"
	"strings"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/database"
)

// locker opens the Locker for the kind of lock. Its errors are about flags.
func (r *run) locker(db *database.Database) (database.Locker, error) {
	if r.kind == database.KindSession {
		l, err := db.Session(r.ttl, db.Signed(r.holder(), r.name), r.shared)
		return l, aboutTTL(err)
	}
	if err := r.ValidateTables(db.Dialect); err != nil {
		return nil, err
	}
	l, err := db.Lease(r.Tables, r.ttl, r.holder())
	return database.AnyKind(l), aboutTTL(err)
}

// aboutTTL names the flag in an error about the TTL.
func aboutTTL(err error) error {
	if err == nil {
		return nil
	}
	if _, text, found := strings.Cut(err.Error(), "TTL "); found {
		return errors.New("--ttl " + text)
	}
	return err
}
