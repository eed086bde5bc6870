// Package pgqueue bounds how many sessions stand in one lock queue of PostgreSQL at a time.
//
// When a session has waited in a queue for deadlock_timeout (a second by default, which only a superuser may change), the
// server looks for a deadlock. Meanwhile nobody gets or gives back a lock of any kind, and the look takes a time that grows
// with the cube of the length of the queue. Where sessions wait for shares, what grows with the square is the end of each
// wait: the server then looks whether others can have the lock. With 900 sessions in a queue, in waits that began anew every
// two seconds, either took all the time of a server (PostgreSQL 15). So a wait ends before a second, and begins anew for a
// few seconds, or it has a seat: one of 64 keys that are hashes of the key of the queue; shares have 64 others. Who gets no
// seat does not stand, but sleeps and tries for one again.
package pgqueue

import (
	"fmt"
	"time"
)

// BeforeLook is for how long a session can wait without being looked at.
const BeforeLook = 950 * time.Millisecond

// Seats is how many seats a queue has for exclusive waiters, and how many for shares. Fewer would be better for the server,
// but who sleeps comes late where the processes of a fleet are served quickly, one after the other.
const Seats = 64

// FirstSeat and FirstShared are the seeds of the hashes of the first seat of each kind, for hashtextextended.
const (
	FirstSeat   = 2 // 1 is that of the gate, see pg/wait.go
	FirstShared = FirstSeat + Seats
)

// TakeSeat returns an SQL expression that takes a seat of the queue of a key, a bigint. The first seat of its kind is first.
// The value is the key of the seat, or NULL if none is free.
func TakeSeat(key string, first int) string {
	return fmt.Sprintf(`(SELECT pg_catalog.hashtextextended(%[1]s::pg_catalog.text, i)
  FROM pg_catalog.generate_series(%[2]d::bigint, %[3]d::bigint) i
  WHERE pg_catalog.pg_try_advisory_lock(pg_catalog.hashtextextended(%[1]s::pg_catalog.text, i))
  LIMIT 1)`, key, first, first+Seats-1)
}
