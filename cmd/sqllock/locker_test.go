package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/pg"
)

func TestAnOptionOfAnotherKindOfLockIsNamedByItsPackage(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onPostgres, err := pg.New("postgres://u@127.0.0.1:1/d")
	must(t, err)
	onMySQL, err := mysql.New("u@tcp(127.0.0.1:1)/d")
	must(t, err)
	lease, err := leasetable.New(sqliteFile(t).DB)
	must(t, err)
	for _, test := range []struct {
		l      locker
		option sqllock.Option
		of     string
	}{
		{onPostgres, leasetable.WithShared(), "of package leasetable"},
		{onMySQL, pg.WithShared(), "of package pg"},
		{lease, pg.WithShared(), "of package pg"},
	} {
		_, err := test.l.TryAcquire(t.Context(), "x", test.option)
		if !errors.Is(err, sqllock.ErrUnsupported) || !strings.HasSuffix(err.Error(), test.of) {
			t.Errorf("%T: %v, want one %s", test.l, err, test.of)
		}
		must(t, test.l.Close())
	}
}
