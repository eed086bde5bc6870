package session

import (
	"fmt"
	"time"
)

// Timing says how long a session outlives its client.
type Timing struct {
	TTL       time.Duration // the server ends a session that was idle for so long
	Heartbeat time.Duration // a session that was idle for so long is pinged
	Waiting   time.Duration // the TTL of a session that waits, if its Conn is a keeper
}

// maxTTL is within the range of every server's setting.
const maxTTL = 24 * time.Hour

// statementTimeout bounds a statement where the trust in the session lasts longer. On a healthy server no statement
// waits for more than about four seconds.
const statementTimeout = 10 * time.Second

// NewTiming validates ttl against the least that the database's statements allow. It sets a heartbeat of a third of
// ttl, but of at most limit.
func NewTiming(ttl, least, limit time.Duration) (Timing, error) {
	if ttl < least || ttl > maxTTL {
		return Timing{}, fmt.Errorf("sqllock: session TTL %v is out of range; it must be from %v to %v", ttl, least, maxTTL)
	}
	return Timing{TTL: ttl, Heartbeat: min(ttl/3, limit)}, nil
}

// margin is how long before the server could end the session the client stops trusting it.
func (t Timing) margin() time.Duration { return t.TTL / 6 }

// trust returns until when a session may be trusted whose last confirmed statement was sent at the given time (I3).
func (t Timing) trust(sent time.Time) time.Time { return sent.Add(t.TTL - t.margin()) }

// whileWaiting is the timing of a session that waits, until Keep was answered.
func (t Timing) whileWaiting() Timing { return Timing{TTL: t.Waiting} }

// silence is the cause when the server did not answer in time.
func (t Timing) silence() error {
	return fmt.Errorf("the server confirmed nothing in time; the session TTL is %v", t.TTL)
}
