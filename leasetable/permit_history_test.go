package leasetable_test

import (
	"errors"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/history"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

var _ history.Sharer = mover{}

func (m mover) Together(limit int) sqllock.Option {
	if limit == history.Any {
		return leasetable.WithShared()
	}
	return leasetable.WithLimit(limit)
}

func (m mover) Unfit(err error) bool {
	var sharing *leasetable.SharingError
	return errors.As(err, &sharing)
}

func TestNoNameIsHeldByTooManyAndNoStaleHolderWrites(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for name, open := range databases { //nolint:paralleltest // one after the other: each keeps several processes busy
		t.Run(name, func(t *testing.T) {
			db := withTables(t, open(t))
			c := newContest(t, db)
			c.opts.TTL, c.opts.Moves = 3*time.Second, false
			c.opts.Processes, c.opts.Workers = 3, 2
			c.opts.Names = []string{"a", "b", "c"}
			c.opts.Limits = map[string][]int{
				"a": {3},                           // a semaphore
				"b": {history.Any, history.Any, 1}, // readers and writers
				"c": {2, 3, history.Any, 1},        // semaphores, of which the smallest limit applies; no readers at the same time
			}
			for i := range c.opts.Others {
				c.opts.Others[i].Times = 1
			}
			c.opts.Kills, c.opts.Stops = 1, 1
			if db.Engine != sqltest.EngineSQLite {
				c.opts.Cuts = 1
				c.add("ends of connections", 1, c.endConnections)
			}
			c.run(t)
		})
	}
}
