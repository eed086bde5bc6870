//go:build !race

package acceptance_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

// A worker is this test binary with these variables. It prints "ready", waits for a line on its standard input, does
// its job, and exits with 0 on success.
const (
	jobEnv    = "SQLLOCK_TEST_JOB"    // a key of jobs
	kindEnv   = "SQLLOCK_TEST_KIND"   // session, lease or none
	driverEnv = "SQLLOCK_TEST_DRIVER" // the driver's name in database/sql
	dsnEnv    = "SQLLOCK_TEST_DSN"
)

// job is the work of one process. It locks with l.
type job func(ctx context.Context, l sqllock.Locker, db *sqlx.DB) error

var jobs = map[string]job{"count": count, "migrate": migrate}

func TestMain(m *testing.M) {
	name := os.Getenv(jobEnv)
	if name == "" {
		os.Exit(m.Run())
	}
	if err := work(jobs[name]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func work(j job) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	db, err := sqlx.Open(os.Getenv(driverEnv), os.Getenv(dsnEnv))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1) // the locks must not need any of it
	l, closeLocker, err := openLocker(db)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeLocker()) }()

	fmt.Fprintln(os.Stdout, "ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	return j(ctx, l, db)
}

func openLocker(db *sqlx.DB) (sqllock.Locker, func() error, error) {
	switch kind := os.Getenv(kindEnv) + " " + db.DriverName(); kind {
	case "session pgx":
		l, err := pg.FromDB(db.DB)
		return l, func() error { return l.Close() }, err
	case "session mysql":
		l, err := mysql.FromDB(db.DB)
		return l, func() error { return l.Close() }, err
	case "lease pgx", "lease mysql", "lease sqlite":
		l, err := leasetable.FromDB(db.DB)
		return sqllock.AnyKind(l), func() error { return l.Close() }, err
	case "none pgx", "none mysql", "none sqlite":
		return noLocker{}, func() error { return nil }, nil
	default:
		return nil, nil, fmt.Errorf("there is no Locker for %q", kind)
	}
}

// runWorkers starts n processes, lets them begin at the same moment, and waits until all have succeeded.
func runWorkers(t *testing.T, n int, name, kind string, db *sqltest.Database) {
	t.Helper()
	type worker struct {
		cmd *exec.Cmd
		in  *os.File
	}
	workers := make([]worker, n)
	for i := range workers {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), jobEnv+"="+name, kindEnv+"="+kind, driverEnv+"="+db.DriverName(), dsnEnv+"="+db.DSN)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdin = r
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_ = r.Close() // the child has its own
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
			t.Fatalf("worker %d says %q (%v)", i, line, err)
		}
		workers[i] = worker{cmd, w}
	}
	for _, w := range workers {
		if _, err := w.in.WriteString("go\n"); err != nil {
			t.Error(err)
		}
	}
	for i, w := range workers {
		if err := w.cmd.Wait(); err != nil {
			t.Errorf("worker %s: %v", strconv.Itoa(i), err)
		}
		_ = w.in.Close() // nothing was buffered
	}
}

// noLocker is the baseline without locks: every acquisition succeeds.
type noLocker struct{}

func (noLocker) TryAcquire(ctx context.Context, name string, _ ...sqllock.Option) (sqllock.Lock, error) {
	return noLock{ctx, name}, nil
}

func (noLocker) Acquire(ctx context.Context, name string, _ ...sqllock.Option) (sqllock.Lock, error) {
	return noLock{ctx, name}, nil
}

type noLock struct {
	ctx  context.Context
	name string
}

func (l noLock) Name() string                  { return l.name }
func (l noLock) Context() context.Context      { return l.ctx }
func (l noLock) Release(context.Context) error { return nil }
