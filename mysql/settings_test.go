package mysql_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/sqltest"
)

func TestSessionLocksAreAsEverWhateverTheSettings(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		odd := locktest.OddMySQL(t, db.DB.DB).Join(locktest.Odd{Together: []string{"maxAllowedPacket=1024"}})
		if db.Engine == sqltest.EngineMariaDB {
			odd.Together = append(odd.Together, "tx_read_only=1")
		} else {
			odd.Together = append(odd.Together, "transaction_read_only=1")
		}
		locktest.UnderSettings(t, database{db}, "mysql", odd, func(ctx context.Context, l locktest.SessionLocker) error {
			_, err := l.(shown).List(ctx)
			if errors.Is(err, sqllock.ErrUnsupported) { // a MariaDB that does not list its locks
				return nil
			}
			return err
		})
	})
}

// New does not use these parameters of its DSN.
func TestTimeoutsOfTheDSNAreLongerThanAWait(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		locktest.LeftWhole(t, database{db}, locktest.WithSetting(db.DSN, "readTimeout=1ms&writeTimeout=1s"), "a")
	})
}

func TestAnOptionOutOfRangeIsAnError(t *testing.T) {
	t.Parallel()
	for name, option := range map[string]mysql.Option{
		"a session TTL that is too short":       mysql.WithSessionTTL(3*time.Second - 1),
		"a negative number of connections":      mysql.WithMaxConnections(-1),
		"no connection":                         mysql.WithMaxConnections(0),
		"one connection, and none to wait on":   mysql.WithMaxConnections(1),
		"more connections than a server can be": mysql.WithMaxConnections(1001),
	} {
		if _, err := mysql.New("user@tcp(localhost)/any", option); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
