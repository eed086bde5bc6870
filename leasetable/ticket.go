package leasetable

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sqllock/sqllock/internal/lockname"
)

// ticket is the content of the text that [Lease.Export] returns.
type ticket struct {
	Version int    `json:"v"`
	Name    []byte `json:"n"`
	Lease   []byte `json:"l"` // the id of the lease that was made for the ticket
	Token   int64  `json:"t"` // of the exported lock
}

const (
	ticketVersion = 1
	maxTicket     = 4096 // more than a ticket of the longest name has
)

func (t ticket) text() string {
	text, _ := json.Marshal(t) // no error: it has no value that JSON lacks
	return base64.RawURLEncoding.EncodeToString(text)
}

// ErrTicket says that the text is not a ticket from [Lease.Export], or has another version.
var ErrTicket = errors.New("the text is not a ticket from Lease.Export")

// readTicket parses a text that ticket.text returned.
func readTicket(text string) (t ticket, err error) {
	if len(text) > maxTicket {
		return ticket{}, fmt.Errorf("%w: it has %d bytes", ErrTicket, len(text))
	}
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(decoded, &t)
	}
	switch {
	case err != nil:
		return ticket{}, fmt.Errorf("%w: %w", ErrTicket, err)
	case t.Version != ticketVersion:
		return ticket{}, fmt.Errorf("%w, or has another version: %d", ErrTicket, t.Version)
	case len(t.Lease) != 16 || t.Token <= 0:
		return ticket{}, ErrTicket
	}
	if err := lockname.Check(string(t.Name)); err != nil {
		return ticket{}, fmt.Errorf("%w: %w", ErrTicket, err)
	}
	return t, nil
}
