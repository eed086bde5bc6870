// Package pgqueue bounds how many sessions stand in one lock queue of PostgreSQL at a time.
//
// When a session has waited in a queue for deadlock_timeout (a second by default, which only a superuser may change), the
// server looks for a deadlock. Meanwhile nobody gets or gives back a lock of any kind, and the look takes a time that grows
// with the cube of the length of the queue. With 900 sessions in a queue, in waits that began anew every two seconds, it
// took all the time of a server (PostgreSQL 15). So a wait ends before that look, or it has a seat: one of 64 keys that are
// hashes of the key of the queue. Who gets no seat does not stand, but sleeps and tries for one again.
package pgqueue

import (
	"fmt"
	"time"
)

// BeforeLook is for how long a session can wait without being looked at.
const BeforeLook = 950 * time.Millisecond

// seats is how many seats a queue has. The least is what a fleet needs whose processes are served quickly one after the
// other: who sleeps comes late.
const seats = 64

// FirstSeat and LastSeat are the seeds of the hashes of the seats, for hashint8extended.
const (
	FirstSeat = 2 // 0 is the key itself, if it is hashed, and 1 its gate
	LastSeat  = FirstSeat + seats - 1
)

// TakeSeat returns an SQL expression that takes a seat of the queue of a key, a bigint. Its value is the key of the seat, or
// NULL if none is free.
func TakeSeat(key string) string {
	return fmt.Sprintf(`(SELECT pg_catalog.hashint8extended(%[1]s, i)
  FROM pg_catalog.generate_series(%[2]d::bigint, %[3]d::bigint) i
  WHERE pg_catalog.pg_try_advisory_lock(pg_catalog.hashint8extended(%[1]s, i))
  LIMIT 1)`, key, FirstSeat, LastSeat)
}
