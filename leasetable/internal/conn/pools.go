package conn

import (
	"database/sql/driver"
	"errors"
	"time"

	"github.com/sqllock/sqllock/internal/connector"
	"github.com/sqllock/sqllock/schema"
)

// Pools are the two pools of a Locker. Each runs statements on a connection of the other if it gets none of its own. Its
// methods without a comment are those of store.Server.
type Pools struct {
	Work     *Pool // acquisitions, releases and reads
	Renewals *Pool // renewals, which nothing else may delay

	connector driver.Connector
	most      Limit
}

// Open returns pools whose connections c opens when they are needed.
func Open(c driver.Connector, d schema.Dialect, most Limit) Pools {
	c = connector.Sharing(c, ConnectTimeout)
	found := new(findings)
	p := Pools{Work: &Pool{findings: found}, Renewals: &Pool{findings: found}, connector: c, most: most}
	p.Work.loan.from, p.Renewals.loan.from = p.Renewals, p.Work
	p.Renewals.loan.turn = make(chan struct{}, 1)
	p.Work.open(c, d, most.Work())
	p.Work.SetConnMaxIdleTime(WorkIdleTime)
	// The connection for renewals is opened with the first lease, and stays open while there is a lease (I38). Once the
	// server has no connection left, it is too late to open one.
	p.Renewals.open(c, d, renewalConns)
	p.Renewals.dialer.rest = renewableTime
	return p
}

func (p Pools) Lend(needs func() RenewalNeeds, full func()) {
	p.Renewals.loan.leases = needs
	p.Renewals.dialer.hurry = func() time.Duration { return needs().TTL / 6 }
	p.Renewals.loan.told, p.Work.loan.told = full, full
}

func (p Pools) MaxTurns() int { return p.most.Turns() }

func (p Pools) Limited() bool { return p.Work.loan.limited() || p.Renewals.loan.limited() }

// BehindPooler reports whether a pooler, or a driver other than pgx, is between here and PostgreSQL.
func (p Pools) BehindPooler() bool { return p.Work.pooler.Load() }

// OnMariaDB reports whether the connections lead to MariaDB.
func (p Pools) OnMariaDB() bool { return p.Work.mariadb.Load() }

// OnGalera reports whether one of the connections led to a Galera node.
func (p Pools) OnGalera() bool { return p.Work.galera.Load() }

// Reconnect has the next statements run on new connections. It closes those that are not in use, and the others after
// their use, unless their statement succeeds.
func (p Pools) Reconnect() {
	for _, pool := range []*Pool{p.Work, p.Renewals} {
		pool.giveUp()
		pool.giveBack()
	}
}

// GiveBack closes the connection for renewals, which no lease needs any more. While the server has no connection left,
// it closes the other idle connections, too.
func (p Pools) GiveBack() {
	p.Renewals.giveBack()
	if p.Limited() {
		p.Work.giveBack()
	}
}

func (p Pools) PrepareRenewal() { p.Renewals.prepare() }

func (p Pools) RenewalConnection() int64 { return p.Renewals.latest.Load() }

func (p Pools) ConnectingTook() time.Duration { return p.Renewals.dialer.lastTook() }

// Close closes both pools.
func (p Pools) Close() error {
	return errors.Join(p.Work.Close(), p.Renewals.Close())
}
