package run

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/console"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/database"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
	"github.com/sqllock/sqllock/internal/locktest"
)

// late is a locker that acquires the lock at the same time as a signal arrives.
type late struct {
	database.Locker
	signals chan<- os.Signal
}

func (l late) TryAcquire(ctx context.Context, name string, opts ...sqllock.Option) (sqllock.Lock, error) {
	lock, err := l.Locker.TryAcquire(ctx, name, opts...)
	l.signals <- os.Interrupt
	<-ctx.Done()
	return lock, err
}

func TestANameIsNotKeptForAWaitThatASignalEnds(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	var flags database.Flags
	db, err := flags.OpenDatabase(&cobra.Command{}, &console.Console{Environ: []string{"SQLLOCK_DB=sqlite:" + filepath.Join(t.TempDir(), "x.db")}})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	r := &run{log: slog.New(slog.DiscardHandler), request: request{name: "x", command: []string{"true"}, kind: database.KindLease, ttl: time.Hour, atLeast: time.Hour}}
	l, err := r.locker(db)
	if err != nil {
		t.Fatal(err)
	}
	received := make(chan os.Signal, 1)
	lock, err := r.take(t.Context(), db, late{l, received}, &process.Signals{C: received})
	if lock != nil || exit.CodeOf(err) != 128+2 {
		t.Errorf("%v, %v, want exit code 130", lock, err)
	}
	next, err := r.locker(db)
	if err != nil {
		t.Fatal(err)
	}
	locktest.MustRelease(t, locktest.MustTry(t, next, "x"))
	if err := next.Close(); err != nil {
		t.Error(err)
	}
}
