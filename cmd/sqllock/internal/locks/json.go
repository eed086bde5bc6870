package locks

import (
	"io"
	"time"
	"unicode/utf8"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/console"
)

// jsonEntry is an entry in the JSON output. sqllock help json describes it.
type jsonEntry struct {
	Name          string    `json:"name,omitempty"`
	NameBytes     []byte    `json:"name_base64,omitempty"`
	ServerName    string    `json:"server_name,omitempty"`
	Kind          string    `json:"kind"`
	State         string    `json:"state"`
	Shared        bool      `json:"shared,omitempty"`
	Limit         int       `json:"limit,omitempty"`
	Token         int64     `json:"token,omitempty"`
	Owner         string    `json:"owner,omitempty"`
	Host          string    `json:"host,omitempty"`
	PID           int       `json:"pid,omitempty"`
	Session       int64     `json:"session,omitempty"`
	Address       string    `json:"address,omitempty"`
	Waiters       int       `json:"waiters,omitempty"`
	WaiterSince   time.Time `json:"waiter_since,omitzero"`
	Since         time.Time `json:"since,omitzero"`
	Until         time.Time `json:"until,omitzero"`
	LeftSeconds   *float64  `json:"left_seconds,omitempty"`
	Metadata      string    `json:"metadata,omitempty"`
	MetadataBytes []byte    `json:"metadata_base64,omitempty"`
}

// jsonLocks is the JSON output of ls and show.
type jsonLocks struct {
	Locks []jsonEntry `json:"locks"` // may be empty
}

// printJSON prints entries as JSON.
func printJSON(w io.Writer, entries []entry, now time.Time) error {
	all := jsonLocks{make([]jsonEntry, 0, len(entries))}
	for _, e := range entries {
		all.Locks = append(all.Locks, e.json(now))
	}
	return console.WriteJSON(w, all, "  ")
}

// jsonEvent is a change in the JSON output.
type jsonEvent struct {
	Time  time.Time `json:"time"`
	Event string    `json:"event"`
	jsonEntry
}

// printJSONEvent prints a change as JSON, on one line.
func printJSONEvent(w io.Writer, c change, now time.Time) error {
	return console.WriteJSON(w, jsonEvent{now.UTC(), c.event, c.json(now)}, "")
}

func (e entry) json(now time.Time) jsonEntry {
	j := jsonEntry{
		Name: e.name, NameBytes: bytesIfNotText(e.name), ServerName: e.serverName, Kind: e.kind, State: e.state,
		Shared: e.shared, Limit: e.limit, Token: e.Token, Owner: e.Owner, Host: e.Host, PID: e.PID, Session: e.Session,
		Address: e.Address, Waiters: e.Waiters, WaiterSince: utc(e.waiterSince), Since: utc(e.Since), Until: utc(e.Until),
		Metadata: e.Metadata, MetadataBytes: bytesIfNotText(e.Metadata),
	}
	if !e.Until.IsZero() {
		left := e.Until.Sub(now).Seconds()
		j.LeftSeconds = &left
	}
	return j
}

// utc converts a time to UTC. The zero time stays zero.
func utc(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC()
}

// bytesIfNotText returns the bytes of a string that a JSON string cannot represent, or nil.
func bytesIfNotText(s string) []byte {
	if utf8.ValidString(s) {
		return nil
	}
	return []byte(s)
}
