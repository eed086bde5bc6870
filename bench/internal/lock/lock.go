// Package lock has the locks that are compared, each as one process uses it.
package lock

import (
	"context"
	"time"
)

// TTL is the time after which a silent holder loses a lock, wherever a library lets its user choose it. It is the default
// of sqllock.
const TTL = 15 * time.Second

// Client is a library as one process has it. Its methods may be called concurrently.
type Client interface {
	// Acquire waits for a name. Some libraries do not end their wait with ctx.
	Acquire(ctx context.Context, name string) (Release, error)
	Close() error
}

// Release gives a name back.
type Release func(ctx context.Context) error

// Engine is a kind of server.
type Engine string

// The servers, in the order of the tables.
const (
	Postgres Engine = "PostgreSQL"
	MariaDB  Engine = "MariaDB"
	MySQL    Engine = "MySQL"
	Redis    Engine = "Redis"
	Etcd     Engine = "etcd"
)

// Engines returns all servers.
func Engines() []Engine { return []Engine{Postgres, MariaDB, MySQL, Redis, Etcd} }

// Role says what a kind is compared as.
type Role string

// The roles.
const (
	Bare    Role = "bare"    // the statements that a user would write without a library
	Library Role = "sqllock" // this library
	Peer    Role = "peer"    // another library
)

// Kind is one kind of lock on one server.
type Kind struct {
	Name   string
	Engine Engine
	Role   Role

	Waits    bool // it can wait for a name
	OneName  bool // a client has one name, and its goroutines cannot share it
	openWith func(ctx context.Context, address string) (Client, error)
}

// ID returns a name that is different for all kinds.
func (k Kind) ID() string { return string(k.Engine) + "/" + k.Name }

// Open opens a client for the server at an address: a DSN, or host:port.
func (k Kind) Open(ctx context.Context, address string) (Client, error) {
	return k.openWith(ctx, address)
}

// Kinds returns all kinds, in the order of the tables: those of one server together, the bare statements first.
func Kinds() []Kind {
	kinds := []Kind{
		{Name: "pg_advisory_lock", Engine: Postgres, Role: Bare, Waits: true, openWith: openAdvisory},
		{Name: "UPDATE of a row", Engine: Postgres, Role: Bare, openWith: openRows(Postgres)},
		{Name: "sqllock/pg", Engine: Postgres, Role: Library, Waits: true, openWith: openPg},
		{Name: "sqllock/leasetable", Engine: Postgres, Role: Library, Waits: true, openWith: openLeases},
		{Name: "goose session lock", Engine: Postgres, Role: Peer, Waits: true, openWith: openGooseSession},
		{Name: "goose table lock", Engine: Postgres, Role: Peer, Waits: true, openWith: openGooseTable(Postgres)},
		{Name: "golang-migrate", Engine: Postgres, Role: Peer, Waits: true, OneName: true, openWith: openMigrate(Postgres)},
	}
	for _, e := range []Engine{MariaDB, MySQL} {
		kinds = append(kinds,
			Kind{Name: "GET_LOCK", Engine: e, Role: Bare, Waits: true, openWith: openGetLock},
			Kind{Name: "UPDATE of a row", Engine: e, Role: Bare, openWith: openRows(e)},
			Kind{Name: "sqllock/mysql", Engine: e, Role: Library, Waits: true, openWith: openMySQL},
			Kind{Name: "sqllock/leasetable", Engine: e, Role: Library, Waits: true, openWith: openLeases},
			Kind{Name: "goose table lock", Engine: e, Role: Peer, Waits: true, openWith: openGooseTable(e)},
			Kind{Name: "golang-migrate", Engine: e, Role: Peer, Waits: true, OneName: true, openWith: openMigrate(e)},
		)
	}
	return append(kinds,
		Kind{Name: "SET NX and a script", Engine: Redis, Role: Bare, openWith: openSetNX},
		Kind{Name: "redislock", Engine: Redis, Role: Peer, Waits: true, openWith: openRedislock},
		Kind{Name: "redsync", Engine: Redis, Role: Peer, Waits: true, openWith: openRedsync},
		Kind{Name: "a transaction", Engine: Etcd, Role: Bare, openWith: openEtcdTxn},
		Kind{Name: "concurrency.Mutex", Engine: Etcd, Role: Peer, Waits: true, openWith: openEtcdMutex},
	)
}

// Find returns the kind with an ID.
func Find(id string) (Kind, bool) {
	for _, k := range Kinds() {
		if k.ID() == id {
			return k, true
		}
	}
	return Kind{}, false
}
