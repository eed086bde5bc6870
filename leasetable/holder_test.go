package leasetable_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// holderEnv makes this test binary a holder: another process that holds the lock "x" on the
// database that the variable names ("driver dsn"), until its standard input ends.
const holderEnv = "SQLLOCK_TEST_HOLDER"

const holderTTL = 1500 * time.Millisecond

// holdForParent is the holder's main function. It prints "held TOKEN"; for each line that it
// reads it releases, and prints what that returned after what the context said before.
func holdForParent() {
	driverName, dsn, _ := strings.Cut(os.Getenv(holderEnv), " ")
	lease, err := holdOn(driverName, dsn)
	if err != nil {
		fmt.Fprintln(os.Stdout, "failed:", err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stdout, "held", lease.Token())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		err := lease.Release(context.Background())
		fmt.Fprintf(os.Stdout, "released: %v\n", err)
	}
}

func holdOn(driverName, dsn string) (*leasetable.Lease, error) {
	db, err := sqlx.Open(driverName, dsn)
	if err != nil {
		return nil, err
	}
	l, err := leasetable.New(db, leasetable.WithTTL(holderTTL), leasetable.WithOwner("the holder"))
	if err != nil {
		return nil, err
	}
	lock, err := l.TryAcquire(context.Background(), "x")
	if err != nil {
		return nil, err
	}
	return lock.(*leasetable.Lease), nil
}

// holder is that process.
type holder struct {
	cmd *exec.Cmd
	in  *os.File
	out *bufio.Reader
}

func startHolder(t *testing.T, db *sqltest.Database) *holder {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holderEnv+"="+db.DriverName()+" "+db.DSN)
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
	h := &holder{cmd: cmd, in: w, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		_ = errors.Join(r.Close(), w.Close(), cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
	})
	return h
}

func (h *holder) line(t *testing.T) string {
	t.Helper()
	line, err := h.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

func (h *holder) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := h.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func TestAKilledHolderIsFollowedWhenItsLeaseExpires(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		h := startHolder(t, db)
		if got := h.line(t); got != "held 1" {
			t.Fatal(got)
		}
		l := newLocker(t, db.DB)
		mustBeHeld(t, l, "x")
		h.signal(t, syscall.SIGKILL)
		mustBeHeld(t, l, "x") // a dead holder still has its lease
		if token := take(t, l, "x").Token(); token != 2 {
			t.Errorf("the next holder has token %d", token)
		}
	})
}

func TestAStoppedHolderLearnsOfItsEndBeforeAnythingSucceeds(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		h := startHolder(t, db)
		if got := h.line(t); got != "held 1" {
			t.Fatal(got)
		}
		h.signal(t, syscall.SIGSTOP)
		l := newLocker(t, db.DB)
		take(t, l, "x") // once the lease has expired
		if _, err := h.in.WriteString("release\n"); err != nil {
			t.Fatal(err)
		}
		h.signal(t, syscall.SIGCONT)
		if got := h.line(t); !strings.Contains(got, "lock was lost") {
			t.Errorf("the stopped holder %s; want ErrLost", got)
		}
		mustBeHeld(t, newLocker(t, db.DB), "x") // by the second one, still
	})
}
