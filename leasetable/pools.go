package leasetable

import (
	"context"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/sqllock/sqllock/internal/connector"
	"github.com/sqllock/sqllock/schema"
)

// pools are the two pools of a Locker. Each runs statements on a connection of the other if it gets none of its own.
type pools struct {
	work     *pool // acquisitions, releases and reads
	renewals *pool // renewals, which nothing else may delay

	connector driver.Connector
}

// openPools returns pools whose connections c opens when they are needed.
func openPools(c driver.Connector, d schema.Dialect) pools {
	c = connector.Sharing(c, connectTimeout)
	found := new(findings)
	p := pools{work: &pool{findings: found}, renewals: &pool{findings: found}, connector: c}
	p.work.loan.from, p.renewals.loan.from = p.renewals, p.work
	p.renewals.loan.turn = make(chan struct{}, 1)
	p.work.open(c, d, workConns)
	p.work.SetConnMaxIdleTime(idleTime)
	// The connection for renewals is opened with the first lease, and stays open while there is a lease. Once the
	// server has no connection left, it is too late to open one.
	p.renewals.open(c, d, renewalConns)
	p.renewals.dialer.rest = renewableTime
	return p
}

// lend allows work to use the connection for renewals as far as needs says. full is called when the server has no
// connection left.
func (p pools) lend(needs func() renewalNeeds, full func()) {
	p.renewals.loan.leases = needs
	p.renewals.dialer.hurry = func() time.Duration { return needs().ttl / 6 }
	p.renewals.loan.told, p.work.loan.told = full, full
}

// limited reports whether the server recently had no connection left.
func (p pools) limited() bool { return p.work.limited() || p.renewals.limited() }

// behindPooler reports whether a pooler, or a driver other than pgx, is between here and PostgreSQL.
func (p pools) behindPooler() bool { return p.work.pooler.Load() }

// onMariaDB reports whether the connections lead to MariaDB.
func (p pools) onMariaDB() bool { return p.work.mariadb.Load() }

// onGalera reports whether one of the connections led to a Galera node.
func (p pools) onGalera() bool { return p.work.galera.Load() }

// dropIdle closes the idle connections.
func (p pools) dropIdle() {
	for _, pool := range []*pool{p.work, p.renewals} {
		pool.SetMaxIdleConns(-1)
		pool.SetMaxIdleConns(pool.conns)
	}
}

// giveBack closes the connection for renewals, which no lease needs any more. While the server has no connection left,
// it closes the other idle connections, too.
func (p pools) giveBack() {
	p.renewals.giveBack()
	if p.limited() {
		p.work.giveBack()
	}
}

// prepareRenewal starts to open another connection for renewals.
func (p pools) prepareRenewal() { p.renewals.prepare() }

// renewalConnection is the number of the latest connection that renewals used: another one may lead to another server.
func (p pools) renewalConnection() int64 { return p.renewals.latest.Load() }

// connectingTook is how long it took last to open a connection for renewals.
func (p pools) connectingTook() time.Duration { return p.renewals.dialer.lastTook() }

// close closes both pools.
func (p pools) close() error {
	return errors.Join(p.work.Close(), p.renewals.Close())
}

// errUnsupportedNotify is the error of listen behind a pooler, or with a driver other than pgx.
var errUnsupportedNotify = errors.New("nothing is heard on this connection")

// listener receives the notifications of a channel on PostgreSQL, on a connection of its own.
type listener struct {
	conn driver.Conn
	// wait waits for a notification.
	wait func(ctx context.Context) (payload string, err error)
}

// listen opens a connection and makes it listen. It notifies that connection itself, with an empty payload. It refuses
// to listen through a pooler, which would give the session that listens to other clients.
func (p pools) listen(ctx context.Context, channel string) (*listener, error) {
	connecting, connected := context.WithTimeout(ctx, connectTimeout)
	defer connected()
	dc, err := p.connector.Connect(connecting)
	if err != nil {
		return nil, err
	}
	err = once(ctx, attemptTimeout, func(ctx context.Context) error {
		direct, err := isDirect(ctx, dc)
		if err == nil && !direct {
			return errUnsupportedNotify
		}
		for _, text := range []string{"LISTEN " + channel, "NOTIFY " + channel} {
			if err == nil {
				err = execOn(ctx, dc, text)
			}
		}
		return err
	})
	if err != nil {
		_ = dc.Close() // the first error says more
		return nil, err
	}
	return &listener{conn: dc, wait: waiterOf(dc)}, nil
}

// close closes the connection.
func (l *listener) close() { _ = l.conn.Close() }
