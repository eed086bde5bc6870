package main

import "time"

// What the command line says and prints, spelled as its users know it: who changes that has to change it here, too.
const (
	kindLease   = "lease"
	kindSession = "session"

	exitUsage       = 64
	exitUnavailable = 69
	exitHeld        = 75
	exitMind        = 78

	stateHeld    = "held"
	stateExpired = "expired"
	stateFree    = "free"

	eventHeld      = "held"
	eventTaken     = "taken"
	eventTakenOver = "taken over"
	eventWaitedFor = "waited for"
	eventExpired   = "expired"
	eventReleased  = "released"
	eventTakenAway = "taken away"

	urlForms = "the database is named by postgres://user:password@host/database, host=… dbname=…, " +
		"mysql://user:password@host/database, user:password@tcp(host)/database or sqlite:PATH"
	fileForms = "it is a file whose first line is the name of a database, or that has a line SQLLOCK_DB=…"

	noLocks = "{\n  \"format_version\": 1,\n  \"locks\": []\n}\n" // ls --json

	mostOfFile = 64 << 10             // of a file that names a database
	mostSigned = 63 - len("sqllock/") // of the owner and the name of a session lock

	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l"
	leaveScreen = "\x1b[m\x1b[?7h\x1b[?25h\x1b[?1049l"
	clearScreen = "\x1b[m\x1b[2J"
	eraseLine   = "\r\x1b[K"
)

// jsonEntry is an entry in the JSON output of ls and show.
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

// jsonEvent is an event in the JSON output of watch.
type jsonEvent struct {
	Time  time.Time `json:"time"`
	Event string    `json:"event"`
	Form  int       `json:"format_version"`
	jsonEntry
}
