package memory

import (
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/conn"
)

// serverFacts says what the server can do. There are no connections to it: they have a number, and nothing else.
type serverFacts struct {
	*Server
	renewals atomic.Int64 // the number of the connection for renewals
}

// System implements store.Server.
func (s *serverFacts) System() string { return s.kind.Name }

// OneWriter implements store.Server.
func (s *serverFacts) OneWriter() bool { return s.kind.OneWriter }

// MaxTurns implements store.Server.
func (s *serverFacts) MaxTurns() int {
	if !s.kind.Turns {
		return 0
	}
	return conn.DefaultLimit.Turns()
}

// mostWaits is how many statements may wait for rows before a handoff, which may wait, is not tried.
const mostWaits = 3

// Saturated implements store.Server.
func (s *serverFacts) Saturated() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waits >= mostWaits
}

// Limited implements store.Server.
func (s *serverFacts) Limited() bool { return false }

// Lend implements store.Server.
func (s *serverFacts) Lend(func() conn.RenewalNeeds, func()) {}

// PrepareRenewal implements store.Server.
func (s *serverFacts) PrepareRenewal() {}

// RenewalConnection implements store.Server.
func (s *serverFacts) RenewalConnection() int64 { return s.renewals.Load() }

// ConnectingTook implements store.Server.
func (s *serverFacts) ConnectingTook() time.Duration { return 0 }

// Reconnect implements store.Server.
func (s *serverFacts) Reconnect() { s.renewals.Add(1) }

// GiveBack implements store.Server.
func (s *serverFacts) GiveBack() {}

// Close implements store.Server.
func (s *serverFacts) Close() error { return nil }
