// Package fleet has processes that want locks. The program starts itself once more for each of them, with Environ set, and
// tells them by lines of JSON on their standard input what to do. They answer each line with one, and report between
// answers what they have acquired.
package fleet

import "time"

// Environ is the environment variable that makes the program a process of a fleet.
const Environ = "SQLLOCK_BENCH_WORKER"

// op is what a process does.
type op string

const (
	opOpen   op = "open"   // opens Clients clients of Kind at Address
	opPair   op = "pair"   // acquires and releases a name of each client's own, which opens its connections
	opRun    op = "run"    // each client acquires Name, which it reports once, holds it for Hold, releases it, and so on
	opTake   op = "take"   // each client acquires Name, and reports that
	opGive   op = "give"   // what take has acquired is released
	opCancel op = "cancel" // run and take end; what they have acquired since the last cancel is in the answer
	opClose  op = "close"  // the clients are closed
)

type request struct {
	Op      op            `json:"op"`
	Kind    string        `json:"kind,omitempty"`
	Address string        `json:"address,omitempty"`
	Clients int           `json:"clients,omitempty"`
	Name    string        `json:"name,omitempty"`
	Hold    time.Duration `json:"hold,omitempty"`
}

// answer is the answer to a request or, with Taken, a report.
type answer struct {
	Error string   `json:"error,omitempty"`
	Spans [][]Span `json:"spans,omitempty"` // of each client
	Taken int64    `json:"taken,omitempty"` // when take has acquired the name, in nanoseconds since 1970
}

// Span is a time in which a client held a lock, in nanoseconds since 1970: from when it knew that it had the lock until it
// began to release it. All processes read the same clock.
type Span struct {
	From int64 `json:"f"`
	To   int64 `json:"t"`
}
