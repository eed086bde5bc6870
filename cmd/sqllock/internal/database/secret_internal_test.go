package database

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/pg"
)

// FuzzNoErrorHasThePassword opens databases by names that differ in what is around a part of the password, and in what follows
// them. Nothing listens on the port.
func FuzzNoErrorHasThePassword(f *testing.F) {
	locktest.OncePerEngine(f)
	const password = "s3cret"
	forms := []string{
		"postgres://u:%s@127.0.0.1:1/d?sslmode=disable", "postgresql://u:%s@127.0.0.1:1,127.0.0.1:2/d", "host=127.0.0.1 port=1 password=%s",
		"host=127.0.0.1 port=1 password='%s'", "mysql://u:%s@127.0.0.1:1/d", "mariadb://u:%s@/d", "u:%s@tcp(127.0.0.1:1)/d", "u:%s@unix(/x)/d",
	}
	for i := range forms {
		for _, s := range []string{"", "/", "?", "#", "@", ":", "%", " ", "'", "\\", "=", "&", "[", "]", "(", ")", "\n", "\x00", "\xff", "//", "tcp(", "?x=/"} {
			f.Add(uint8(i), s, s, "")
			f.Add(uint8(i), s, "", s)
		}
	}
	f.Fuzz(func(t *testing.T, form uint8, before, after, end string) {
		if strings.Contains(before+after+end, "s3") {
			return
		}
		name := fmt.Sprintf(forms[int(form)%len(forms)], before+password+after) + end
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		check := func(err error) {
			if err != nil && strings.Contains(err.Error(), password) {
				t.Errorf("%q: %v", name, err)
			}
		}
		if db, err := openURL(name); err != nil {
			check(err)
		} else {
			check(db.PingContext(ctx))
			check(fmt.Errorf("%v", db.Attrs()))
			db.Close()
		}
		leases, err := leasetable.New(name)
		check(err)
		tryOne(ctx, leases, err, check)
		postgres, err := pg.New(name)
		check(err)
		tryOne(ctx, postgres, err, check)
		maria, err := mysql.New(name)
		check(err)
		tryOne(ctx, maria, err, check)
	})
}

// tryOne tries to acquire a lock of a Locker, unless it could not be opened, and closes it.
func tryOne[L sqllock.Lock, A interface {
	sqllock.Acquirer[L]
	io.Closer
}](ctx context.Context, l A, opened error, check func(error)) {
	if opened == nil {
		_, err := l.TryAcquire(ctx, "x")
		check(err)
		check(l.Close())
	}
}
