package store

import (
	"context"

	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/schema"
)

// WaitInVain waits for permission to wait for a row while the row-wait limiter is saturated.
func WaitInVain(ctx context.Context) error {
	p := newRowWaitLimiter(3)
	locked := func() bool { return false }
	for !p.saturated() {
		_, _ = p.acquire(ctx, locked)
	}
	_, err := p.acquire(ctx, locked)
	return dberr.Classify(err)
}

// Placeholders returns, for each statement of a dialect, its text as it is sent, and how many arguments are sent with it.
func Placeholders(d schema.Dialect) (texts map[string]string, sent map[string]int, err error) {
	all, err := loadStatements(d, schema.Tables{})
	texts, sent = make(map[string]string), make(map[string]int)
	for st, p := range all {
		texts[string(st)], sent[string(st)] = p.Text, len(p.order)
	}
	return texts, sent, err
}

// PostgresTurn returns the key of the turn of a name in a table.
func PostgresTurn(table, name string) int64 {
	return (&postgresTurn{turn: turn{locks: table}}).number(name)
}
