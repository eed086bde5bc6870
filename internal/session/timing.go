package session

import (
	"errors"
	"fmt"
	"time"
)

// Timing says how long a session outlives its client.
type Timing struct {
	TTL       time.Duration // the server ends a session that was idle for so long
	Heartbeat time.Duration // a session that was idle for so long is pinged
}

// NewTiming validates ttl against the least that the database's statements allow, and sets a
// heartbeat of a third of it, but of at most limit where limit is not zero.
func NewTiming(ttl, least, limit time.Duration) (Timing, error) {
	if ttl < least {
		return Timing{}, fmt.Errorf("sqllock: session TTL %v is too short; it must be at least %v", ttl, least)
	}
	heartbeat := ttl / 3
	if limit > 0 {
		heartbeat = min(heartbeat, limit)
	}
	return Timing{TTL: ttl, Heartbeat: heartbeat}, nil
}

// margin is how long before the server could end the session the client stops trusting it.
func (t Timing) margin() time.Duration { return t.TTL / 6 }

// trust returns until when a session may be trusted whose last confirmed statement was sent
// at the given time.
func (t Timing) trust(sent time.Time) time.Time { return sent.Add(t.TTL - t.margin()) }

// errSilent is the cause when the server was not heard of in time.
var errSilent = errors.New("nothing was confirmed by the server within the session TTL")

func (t Timing) silence(late time.Duration) error {
	return fmt.Errorf("%w of %v (%v too late)", errSilent, t.TTL, late.Round(time.Millisecond))
}
