package leasetable_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// proxy is the network of a Locker. One answer at a time is to be lost or delayed: the next one to a request that contains a
// word. A test calls its methods from one goroutine.
type proxy struct {
	*sqltest.Network
	db    *sqltest.Database
	spare int               // how many requests with the next word are spared
	armed *sqltest.Answer   // nil at first
	lost  []*sqltest.Answer // all that were to be lost
}

// through returns a DSN that leads to db through a new proxy.
func through(t *testing.T, db *sqltest.Database) (*proxy, string) {
	t.Helper()
	network := db.Network(t)
	return &proxy{Network: network, db: db}, network.DSN
}

// newLockerThrough opens a Locker whose connections go through a new proxy.
func newLockerThrough(t *testing.T, db *sqltest.Database, opts ...leasetable.Option) (*proxy, *leasetable.Locker) {
	t.Helper()
	p, dsn := through(t, db)
	return p, newLocker(t, open(t, db.DriverName(), dsn), opts...)
}

// addressOf returns the address of db's server, as in its DSN.
func addressOf(db *sqltest.Database) string {
	return locktest.AddressIn(db.DSN)
}

// arm replaces the answer that has not been asked for.
func (p *proxy) arm(a *sqltest.Answer) *sqltest.Answer {
	if p.isArmed() {
		p.armed.Pass()
	}
	p.armed, p.spare = a.Skip(p.spare), 0
	return a
}

// loseAnswerTo makes the next answer be lost.
func (p *proxy) loseAnswerTo(word string) {
	p.lost = append(p.lost, p.arm(p.DropAnswer(word)))
}

// delayAnswerTo makes the next answer be late. The returned function passes it on.
func (p *proxy) delayAnswerTo(word string) (passOn func()) {
	return p.arm(p.HoldAnswer(word)).Pass
}

// isArmed reports whether an answer has not been asked for.
func (p *proxy) isArmed() bool { return p.armed != nil && !isClosed(p.armed.Asked()) }

func (p *proxy) answersLost() (n int) {
	for _, a := range p.lost {
		if isClosed(a.Answered()) {
			n++
		}
	}
	return n
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// switchTo ends all connections; new ones lead to another server, or nowhere if there is no listener.
func (p *proxy) switchTo(server string) {
	p.SwitchTo(&sqltest.Database{Engine: p.db.Engine, DSN: strings.Replace(p.db.DSN, addressOf(p.db), server, 1)})
}

// onWire returns bytes as they appear in a request: unchanged, or in hex on MySQL.
func onWire(db *sqltest.Database, b []byte) string {
	if db.Engine == sqltest.EnginePostgres {
		return string(b)
	}
	return hex.EncodeToString(b)
}
