package memory

import "time"

// Kind is what a server is like where the servers differ.
type Kind struct {
	Name       string
	Turns      bool          // it has a queue for waiters; see store.Turn
	Async      bool          // the commit of a release does not wait for the disk
	OneWriter  bool          // all writers wait for one lock, and rows are not locked
	LocksFirst bool          // an update locks a row before it looks whether the row meets its condition
	LeaseFirst bool          // an update looks for the row of a lease before it locks the row of a name
	Upserts    bool          // the statement that acquires a name inserts it if it has no row
	Refuses    bool          // the statement that acquires a free name fails if the row is locked
	LockWait   time.Duration // for how long a statement waits for a lock; 0: as long as its context lives
}

// The kinds of servers.
var (
	Postgres = Kind{Name: "postgresql", Turns: true, Async: true}
	MySQL    = Kind{Name: "mysql", Turns: true, LocksFirst: true, LeaseFirst: true, Upserts: true, LockWait: 2 * time.Second}
	MariaDB  = Kind{Name: "mariadb", Turns: true, LocksFirst: true, Refuses: true, Upserts: true, LockWait: 2 * time.Second}
	SQLite   = Kind{Name: "sqlite", OneWriter: true, Upserts: true, LockWait: 100 * time.Millisecond}
)
