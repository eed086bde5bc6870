package store

import (
	"context"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/conn"
)

// Store has the steps of the protocol, each of which is atomic. That is all that the engine knows of a database: see
// "Statements" in docs/design.md. An error that dberr.OutcomeKnown accepts is the database's word that the step did
// nothing. After any other error the step may have been done, or may still be.
type Store interface {
	ReadSteps
	LeaseSteps
	AcquireSteps
	ReleaseSteps
	BatchSteps
	HoldSteps
	PermitSteps
	WaitSteps
	Server
}

// ReadSteps are the steps that write nothing.
type ReadSteps interface {
	// Read reads the state of a name, with its shares or permits. A name that was never acquired reads as free.
	Read(ctx context.Context, name string) (State, error)
	// ReadPermits reads the state of a name, and all its permits, in one snapshot.
	ReadPermits(ctx context.Context, name string) (State, error)
	// List returns the states of up to limit names from from to last, in the order of their bytes. The permits of names
	// are not among them: see ListPermits.
	List(ctx context.Context, from, last string, limit int) ([]State, error)
	// ListPermits returns the permits of the names from from to last, in the order of names and tokens.
	ListPermits(ctx context.Context, from, last []byte) ([]State, error)
	// StillHeld returns which of the names a lease holds, as a whole or by permits: their names, tokens, and which of them
	// are permits.
	StillHeld(ctx context.Context, id []byte, names []string) ([]State, error)
	// NamesOf returns, as StillHeld does, what a lease holds of the first limit names that follow a name. The row with the
	// token 0 is the last of those names; there is none if no name follows.
	NamesOf(ctx context.Context, id []byte, after string, limit int) ([]State, error)
	// Accepts returns an error that matches sqllock.ErrSchema if the tables take a later release of this program.
	Accepts(ctx context.Context) error
	// Diagnose adds to the error of a step that was not answered what is known of the server. It returns other errors
	// unchanged.
	Diagnose(ctx context.Context, err error) error
}

// LeaseSteps are the steps on rows of leases. None waits for the row of a name.
type LeaseSteps interface {
	// OpenLease commits a lease row, and returns when the statement was sent. It connects first: the statement has less
	// time than connecting may take. The error matches ErrNoLease. After an error the row may be there, but nothing
	// refers to it, and it expires.
	OpenLease(ctx context.Context, l LeaseRow, within time.Duration) (sent time.Time, err error)
	// Renew renews a lease that has not expired. It reports whether it did, and returns the count of changes that others
	// made to the locks of the lease.
	Renew(ctx context.Context, id []byte) (there bool, changes int64, err error)
	// EndLease deletes a lease row, and so frees all that the lease holds. It uses the connection for renewals.
	EndLease(ctx context.Context, id []byte) error
	// Expire deletes the row of a lease that has expired, and reports whether it did. A renewal that comes before keeps
	// the lease alive; a renewal that comes after finds no row.
	Expire(ctx context.Context, id []byte) (expired bool, err error)
	// ExpireUnchanged deletes the row of a lease that was not renewed since its renewals were counted, and reports
	// whether it did.
	ExpireUnchanged(ctx context.Context, id []byte, renewals int64) (expired bool, err error)
	// Expired lists up to limit leases that expired at least the given time ago: of each State only the LeaseID is set.
	Expired(ctx context.Context, ago time.Duration, limit int) ([]State, error)
}

// AcquireSteps are the steps that acquire a name which nobody holds.
type AcquireSteps interface {
	// AcquireFree acquires a name that has a row and is free. It does not wait for the row of a name that is held.
	AcquireFree(ctx context.Context, req *Request) (Result, error)
	// Acquire acquires a name that is free. It may wait for the row. Only a limited number of callers may call it with a
	// request that is not Patient.
	Acquire(ctx context.Context, req *Request) (Result, error)
	// Insert acquires a name that has no row.
	Insert(ctx context.Context, req *Request) (token int64, err error)
	// Takeover acquires a name that a lease holds whose row is gone. It may wait for the row of the name. If the row of the
	// lease is there after all, as when a replica had not shown it, it acquires nothing.
	Takeover(ctx context.Context, req *Request, dead []byte) (token int64, err error)
	// Convert acquires a name that is free for a lease, on the condition that it has this token and no permits. It
	// returns the new token, or 0.
	Convert(ctx context.Context, name string, token int64, id, metadata []byte) (next int64, err error)
}

// ReleaseSteps are the steps that free a name.
type ReleaseSteps interface {
	// Release frees a name that is held with the lease and token. It may wait for the row, as Acquire may.
	Release(ctx context.Context, req *Request) (Result, error)
	// ReleaseByLease frees a name that the lease holds, whatever the token, and returns how many it freed. The name is
	// kept for the minimum hold.
	ReleaseByLease(ctx context.Context, name string, id []byte, minHold time.Duration) (freed int64, err error)
	// Force frees a name if its state is still the one that was read, and notes a change for its lease. It reports
	// whether the state was still the same.
	Force(ctx context.Context, name string, state State) (bool, error)
}

// BatchSteps are the steps that acquire or free several names for one lease.
type BatchSteps interface {
	// AcquireMany acquires those of the names that are free and whose rows nobody has locked. The requests are alike. On
	// MariaDB it may leave out a free name that another process has held since this store released it.
	AcquireMany(ctx context.Context, reqs []*Request) (map[string]Result, error)
	// ReleaseMany frees those of the names that are held as requested and whose rows nobody has locked. The requests are
	// alike.
	ReleaseMany(ctx context.Context, reqs []*Request) (map[string]Result, error)
}

// HoldSteps are the steps of the holder of a name. They may wait for its row.
type HoldSteps interface {
	// Move moves a name from one lease to another, and reports whether it is on the new one.
	Move(ctx context.Context, name string, token int64, from, to []byte) (there bool, err error)
	// Adopt moves a name from the lease of a ticket to the lease id, bumps its token and attaches metadata, unless that
	// is nil. It returns the new token, or 0 if the name was not there. A repetition finds what the first attempt did.
	Adopt(ctx context.Context, from Held, id, metadata []byte) (token int64, err error)
	// HandOff bumps the token of a held name by n, and replaces its metadata. It returns the new token, or 0 if the name
	// was not held with the token, and whether another process waits for the name. After an error the token may have
	// been bumped.
	HandOff(ctx context.Context, h Held, n int64, metadata []byte) (last int64, hasWaiter bool, err error)
	// SetMetadata replaces the metadata of a held name. It reports whether the name was held.
	SetMetadata(ctx context.Context, h Held, metadata []byte) (held bool, err error)
	// Pin makes sure that a name stays held until the transaction has ended (I13). It reports whether the name is held.
	Pin(ctx context.Context, tx Transaction, h Held) (found bool, err error)
}

// PermitSteps are the steps on shares and permits of a name.
type PermitSteps interface {
	// AcquirePermit takes a permit of a name whose lock row is still as in state. It returns the permit's token, or 0 if
	// the row has changed, or the lease in state has a row. The token is the next one after that in state, whatever becomes
	// of the answer (I31).
	AcquirePermit(ctx context.Context, name string, state State, id []byte, limit int) (token int64, err error)
	// ReleasePermit frees a permit, and returns how many it freed: one or none.
	ReleasePermit(ctx context.Context, name string, id []byte, token int64) (int64, error)
	// ClearPermit clears the permit of a lease that is over, and reports whether it did. A guarded transaction prevents
	// that, and so does the row of the lease.
	ClearPermit(ctx context.Context, name string, permit State) (bool, error)
	// BumpToken bumps the token of a name whose lock row is still as in state. From then on AcquirePermit takes nothing
	// from this state.
	BumpToken(ctx context.Context, name string, state State) error
	// ForcePermits frees all permits of a name, and notes a change on their leases (I34). It reports whether nobody had
	// taken a permit since they were read.
	ForcePermits(ctx context.Context, name string, token int64) (forced bool, err error)
}

// WaitSteps are the steps of waiters: notes in the row of a name, and turns. They decide nothing.
type WaitSteps interface {
	// NoteWaiter notes in the row of a held name, for the given time, that somebody waits for it since then. An earlier
	// note stays. It reports false if the name is free, or its row is locked.
	NoteWaiter(ctx context.Context, name string, since int64, within time.Duration) (noted bool, err error)
	// RemoveWaiter removes the note of the waiter that waits since then, unless the row is locked: the note expires.
	RemoveWaiter(ctx context.Context, name string, since int64) error
	// NoteExclusiveWaiter keeps others from taking permits of a name for us microseconds; nil ends that.
	NoteExclusiveWaiter(ctx context.Context, name string, us any) error
	// OpenTurn opens a session that stands in the server's own queue for a name.
	OpenTurn(ctx context.Context) (Turn, error)
}

// Server is what the engine knows of the server, and of the connections to it.
type Server interface {
	// System is the name of the database for people.
	System() string
	// OneWriter reports whether all writers wait for one lock, as they do for a SQLite file.
	OneWriter() bool
	// MaxTurns is how many turns may be open at a time. It is 0 if the server has no queue of its own for waiters; see Turn.
	MaxTurns() int
	// Saturated reports whether a step that may wait for a row would have to wait for its turn.
	Saturated() bool
	// Limited reports whether the server recently had no connection left.
	Limited() bool
	// Lend allows other steps to use the connection for renewals as far as needs says. full is called when the server
	// has no connection left.
	Lend(needs func() conn.RenewalNeeds, full func())
	// PrepareRenewal starts to open another connection for renewals.
	PrepareRenewal()
	// RenewalConnection is the number of the latest connection that renewals used: another one may lead to another
	// server.
	RenewalConnection() int64
	// ConnectingTook is how long it took last to open a connection for renewals.
	ConnectingTook() time.Duration
	// Reconnect has the next statements run on new connections.
	Reconnect()
	// GiveBack closes the connection for renewals, which no lease needs any more.
	GiveBack()
	// Close closes the connections.
	Close() error
}
