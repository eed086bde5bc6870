package store

import (
	"database/sql/driver"

	"github.com/sqllock/sqllock/leasetable/internal/conn"
	"github.com/sqllock/sqllock/schema"
)

// Store has the steps of the protocol on one database.
type Store struct {
	*database
	reads
	leases
	holds
	permits
	waits
	*batches

	Acquires, releases *queue // of the callers who share statements
}

// New returns a store on the tables t of the database that c connects to. hand runs a function in another
// goroutine.
func New(c driver.Connector, d schema.Dialect, t schema.Tables, hand func(f func()) error) (*Store, error) {
	if err := t.Validate(d); err != nil {
		return nil, err
	}
	texts, err := loadStatements(d, t)
	if err != nil {
		return nil, err
	}
	db := &database{Pools: conn.Open(c, d), dialect: d, Texts: texts, RowWaits: newRowWaitLimiter()}
	s := &Store{
		database: db,
		reads:    reads{db},
		leases:   leases{db},
		holds:    holds{db},
		permits:  permits{db},
		waits:    waits{db},
		batches:  &batches{database: db},
	}
	s.newQueues(hand)
	return s, nil
}
