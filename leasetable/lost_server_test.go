package leasetable_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	gomysql "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/internal/oddserver"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

func TestAWaitOutlastsAProxyThatHasLostItsServer(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for _, letsIn := range []bool{false, true} {
		t.Run(fmt.Sprintf("clients may connect: %t", letsIn), func(t *testing.T) {
			t.Parallel()
			onServers(t, func(t *testing.T, db *sqltest.Database) {
				answers := oddserver.Answers{Connecting: "2003", Statement: "2013"}
				switch {
				case db.Engine == sqltest.EnginePostgres && letsIn:
					answers = oddserver.Answers{Statement: "58000"}
				case db.Engine == sqltest.EnginePostgres:
					answers = oddserver.Answers{Connecting: "XX000", Statement: "XX000"}
				case letsIn:
					answers = oddserver.Answers{Statement: "9001"}
				}
				outlastsProxy(t, db, answers)
			})
		})
	}
}

func outlastsProxy(t *testing.T, db *sqltest.Database, answers oddserver.Answers) {
	behindProxy := func() (*oddserver.Proxy, *sqlx.DB) {
		p := oddserver.NewProxy(t, db)
		return p, open(t, db.DriverName(), strings.Replace(db.DSN, addressOf(db), p.Address, 1))
	}
	p, behind := behindProxy()
	own := take(t, newLocker(t, behind, leasetable.WithTTL(time.Hour)), "own")
	p.Lose(answers)
	released := make(chan error, 1)
	go func() { released <- releaseOrGiveUp(t.Context(), own) }()
	eventually(t, func() bool { return p.Answered() >= 2 })
	p.Find()
	if err := receive(t, released); err != nil && !errors.Is(err, errGaveUp) {
		t.Errorf("Release: %v", err)
	}

	p, behind = behindProxy()
	holder := take(t, newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), "busy")
	metBusy, told := onTrouble()
	busy := acquiring(newLocker(t, behind, told), "busy")
	eventually(t, func() bool { return wanted(t, db) })
	seen, _ := observe(t, newElector(t, newLocker(t, behind)))
	sees := func(trouble bool) {
		t.Helper()
		for s, ok := <-seen; ; s, ok = <-seen {
			if !ok {
				t.Fatal("Observe has ended")
			}
			if (s.err != nil) == trouble {
				return
			}
		}
	}
	sees(false)

	p.Lose(answers)
	sees(true)
	_ = receive(t, metBusy)
	metFree, told := onTrouble()
	free := acquiring(newLocker(t, behind, told), "free")
	_ = receive(t, metFree)
	metLeader, told := onTrouble()
	leader := campaign(t, newElector(t, newLocker(t, behind, told)))
	_ = receive(t, metLeader)
	if len(busy)+len(free)+len(leader.ended) > 0 {
		t.Error("a wait or a campaign ended with the server of the proxy")
	}
	p.Find()
	sees(false)
	leader.mustLead(t)
	release(t, holder)
	release(t, mustGet(t, busy), mustGet(t, free))
}

// An answer that does not pass looks the same: a call that may wait for ever says so, others end.
func TestAProxyWithoutAServerIsTold(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		p := oddserver.NewProxy(t, db)
		met, told := onTrouble()
		l := newLocker(t, open(t, db.DriverName(), strings.Replace(db.DSN, addressOf(db), p.Address, 1)), told)
		code := "XX000"
		if db.Engine != sqltest.EnginePostgres {
			code = "9001"
		}
		p.Lose(oddserver.Answers{Statement: code})
		if _, err := l.TryAcquire(t.Context(), "x"); answerIn(err) != code || !sqllock.IsRetryable(err) || len(met) > 0 {
			t.Errorf("TryAcquire: %v; told %d times", err, len(met))
		}
		if _, err := l.Acquire(t.Context(), "x", sqllock.WithWait(5*time.Second)); !strings.Contains(fmt.Sprint(err), "the proxy has lost its server") {
			t.Errorf("Acquire: %v", err)
		}
		if len(met) != 1 {
			t.Errorf("it was told %d times", len(met))
		}
	})
}

func TestAWaitOutlastsAPasswordThatIsRefusedForAWhile(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		dsn := limited(t, db, 100)
		user, _, _ := strings.Cut(strings.TrimPrefix(dsn, "postgres://"), ":")
		alter := "ALTER USER '" + user + "'@'%' IDENTIFIED BY "
		refused, back := "1045", "'One1-one'"
		if db.Engine == sqltest.EnginePostgres {
			alter = "ALTER ROLE " + user + " PASSWORD "
			refused, back = "28P01", "'one'"
		}
		network := db.Network(t)
		pool := open(t, db.DriverName(), strings.Replace(dsn, addressOf(db), network.Address(), 1))
		met, told := onTrouble()
		l := newLocker(t, pool, told)
		release(t, take(t, l, "x"))
		run(t, db, alter+"'Another1-one'")
		network.Disconnect()
		var err error
		eventually(t, func() bool {
			_, err = l.TryAcquire(t.Context(), "y")
			return answerIn(err) == refused
		})
		if !sqllock.IsRetryable(err) {
			t.Errorf("TryAcquire: %v; it should be retryable", err)
		}
		got := acquiring(l, "x")
		if err := receive(t, met); answerIn(err) != refused {
			t.Errorf("the wait has met: %v", err)
		}
		met, told = onTrouble()
		if _, err := newLocker(t, pool, told).Acquire(t.Context(), "x"); answerIn(err) != refused || sqllock.IsRetryable(err) || len(met) > 0 {
			t.Errorf("Acquire of a Locker that was never admitted: %v", err)
		}
		if len(got) > 0 {
			t.Error("the wait has ended")
		}
		run(t, db, alter+back)
		release(t, mustGet(t, got))
	})
}

// answerIn returns the code of the server's answer in an error.
func answerIn(err error) string {
	var postgres *pgconn.PgError
	var mysql *gomysql.MySQLError
	switch {
	case errors.As(err, &postgres):
		return postgres.Code
	case errors.As(err, &mysql):
		return fmt.Sprint(mysql.Number)
	}
	return ""
}

// MySQL's driver sets the parameters of a DSN as it connects: the answer is that of the server, though its code is rare.
func TestAWrongParameterOfTheDSNEndsAWait(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onMySQL(t, func(t *testing.T, db *sqltest.Database) {
		for _, parameter := range []string{"no_such_variable=1", "time_zone='nowhere'"} {
			dsn := strings.Split(db.DSN, "?")[0] + "?" + parameter
			_, err := newLocker(t, open(t, db.DriverName(), dsn)).Acquire(t.Context(), "x")
			if err == nil || sqllock.IsRetryable(err) {
				t.Errorf("%s: %v", parameter, err)
			}
		}
	})
}
