package memory

import (
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/conn"
)

// System implements store.Server.
func (s *Store) System() string { return s.kind.Name }

// OneWriter implements store.Server.
func (s *Store) OneWriter() bool { return s.kind.OneWriter }

// MaxTurns implements store.Server.
func (s *Store) MaxTurns() int {
	if !s.kind.Turns {
		return 0
	}
	return conn.DefaultLimit.Turns()
}

// mostWaits is how many statements may wait for rows before a handoff, which may wait, is not tried.
const mostWaits = 3

// Saturated implements store.Server.
func (s *Store) Saturated() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waits >= mostWaits
}

// Limited implements store.Server.
func (s *Store) Limited() bool { return false }

// Lend implements store.Server.
func (s *Store) Lend(func() conn.RenewalNeeds, func()) {}

// PrepareRenewal implements store.Server.
func (s *Store) PrepareRenewal() {}

// RenewalConnection implements store.Server.
func (s *Store) RenewalConnection() int64 { return s.renewals.Load() }

// ConnectingTook implements store.Server.
func (s *Store) ConnectingTook() time.Duration { return 0 }

// Reconnect implements store.Server.
func (s *Store) Reconnect() { s.renewals.Add(1) }

// GiveBack implements store.Server.
func (s *Store) GiveBack() {}

// Close implements store.Server.
func (s *Store) Close() error { return nil }
