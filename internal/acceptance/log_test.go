package acceptance_test

import (
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"strings"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/event"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/pg"
)

// A program that waits for a host that is wrong, and that has set no logger, is told. There is no server.
func TestByDefaultAWaitForADatabaseThatIsNotThereIsLogged(t *testing.T) { //nolint:paralleltest // it changes the default logger
	const address = "127.0.0.1:1" // no program gets that port by chance
	logger, writer, flags := slog.Default(), log.Writer(), log.Flags()
	defer func() {
		slog.SetDefault(logger)
		log.SetOutput(writer)
		log.SetFlags(flags)
	}()
	postgres, maria := "postgres://"+address+"/x?sslmode=disable", "tcp("+address+")/x"
	type hook = func(context.Context, sqllock.Event)
	for name, open := range map[string]func(hook) (sqllock.Locker, io.Closer, error){
		"pg": func(h hook) (sqllock.Locker, io.Closer, error) {
			l, err := pg.New(postgres, pg.WithHook(h))
			return l, l, err
		},
		"mysql": func(h hook) (sqllock.Locker, io.Closer, error) {
			l, err := mysql.New(maria, mysql.WithHook(h))
			return l, l, err
		},
		"leasetable": func(h hook) (sqllock.Locker, io.Closer, error) {
			l, err := leasetable.New(postgres, leasetable.WithHook(h))
			return sqllock.AnyKind(l), l, err
		},
		"pg, silent": func(h hook) (sqllock.Locker, io.Closer, error) {
			l, err := pg.New(postgres, pg.WithHook(h), pg.WithLogger(nil))
			return l, l, err
		},
		"mysql, silent": func(h hook) (sqllock.Locker, io.Closer, error) {
			l, err := mysql.New(maria, mysql.WithHook(h), mysql.WithLogger(nil))
			return l, l, err
		},
		"leasetable, silent": func(h hook) (sqllock.Locker, io.Closer, error) {
			l, err := leasetable.New(postgres, leasetable.WithHook(h), leasetable.WithLogger(nil))
			return sqllock.AnyKind(l), l, err
		},
	} {
		var text strings.Builder
		slog.SetDefault(slog.New(slog.NewTextHandler(&text, nil)))
		ctx, cancel := context.WithCancel(t.Context())
		l, closer, err := open(func(_ context.Context, e sqllock.Event) {
			if e.Kind == event.Retrying { // it was logged before
				cancel()
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = l.Acquire(ctx, "x")
		cancel()
		if !errors.Is(err, context.Canceled) || closer.Close() != nil {
			t.Errorf("%s: %v", name, err)
		}
		got, silent := text.String(), strings.HasSuffix(name, "silent")
		if strings.Contains(got, `level=WARN msg="lock retrying"`) == silent || silent && got != "" {
			t.Errorf("%s logs %q", name, got)
		}
	}
}
