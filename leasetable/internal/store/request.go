package store

import "time"

// Request asks for one name to be acquired or released for one caller.
type Request struct {
	Name    string
	ID      []byte // of the lease
	Token   int64  // that the name is held with, or was released with; see knownTokens
	MinHold time.Duration
	Since   int64 // since when the caller waits, if the row of the name may say so

	Metadata []byte // to attach

	Patient bool // the statement waits until it may wait for the row, or need not wait (I38); otherwise a queue limits it
}

// key is the name as an argument of a statement.
func (req *Request) key() any {
	if req.Patient {
		return row{[]byte(req.Name)}
	}
	return []byte(req.Name)
}

// patient returns a copy of req that is Patient. Requests that share a statement are not.
func (req *Request) patient() *Request {
	q := *req
	q.Patient = true
	return &q
}

// minHoldUS is MinHold in microseconds, or nil.
func (req *Request) minHoldUS() any {
	if req.MinHold == 0 {
		return nil
	}
	return req.MinHold.Microseconds()
}

// Result is what a statement did to one name.
type Result struct {
	Token     int64 // with which the name was acquired or released; 0: it was not
	HasWaiter bool  // the name was released, and another process waits for it
}

// MaxName is the maximum length of a name in bytes.
const MaxName = 1024
