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

	"github.com/sqllock/sqllock/internal/history"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// holderEnv makes this test binary a holder: another process that holds the lock "x" on the database that the variable
// names ("driver dsn"), until its standard input ends.
const holderEnv = "SQLLOCK_TEST_HOLDER"

const holderTTL = 10 * time.Second

// holdForParent is the main function of the holder. It prints "held TOKEN". For each word that it reads it writes to
// the register, extends, exports or releases, and prints the result.
func holdForParent() {
	driverName, dsn, _ := strings.Cut(os.Getenv(holderEnv), " ")
	db, err := sqlx.Open(driverName, dsn)
	if err != nil {
		fmt.Fprintln(os.Stdout, "failed:", err)
		os.Exit(1)
	}
	lease, err := holdOn(db)
	if err != nil {
		fmt.Fprintln(os.Stdout, "failed:", err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stdout, "held", lease.Token())
	to := &register{db: db}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		ctx := context.Background()
		switch in.Text() {
		case "write":
			fmt.Fprintf(os.Stdout, "wrote: %v\n", to.write(ctx, lease))
		case "guard":
			fmt.Fprintf(os.Stdout, "guarded: %v\n", to.Guard(ctx, lease))
		case "fence":
			fmt.Fprintf(os.Stdout, "fenced: %v\n", to.fence(ctx, lease))
		case "extend":
			fmt.Fprintf(os.Stdout, "extended: %v\n", lease.Extend(ctx, time.Minute))
		case "export":
			ticket, err := lease.Export(ctx, time.Minute)
			fmt.Fprintf(os.Stdout, "exported: %v %s\n", err, ticket)
		default:
			fmt.Fprintf(os.Stdout, "released: %v\n", lease.Release(ctx))
		}
	}
}

func holdOn(db *sqlx.DB) (*leasetable.Lease, error) {
	l, err := fromDB(db, leasetable.WithTTL(holderTTL), leasetable.WithOwner("the holder"))
	if err != nil {
		return nil, err
	}
	return locktest.TryFree(context.Background(), l, "x") // a machine that is slow may open the lease only at the second try
}

// holder is such a process.
type holder struct {
	cmd *exec.Cmd
	in  *os.File
	out *bufio.Reader
}

func startHolder(t testing.TB, db *sqltest.Database) *holder {
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

// expire has the lease of a holder that was killed expire: by SQL, and on SQLite by itself. That it expires by itself everywhere
// the tests of stopped holders show.
func (h *holder) expire(t *testing.T, db *sqltest.Database) {
	t.Helper()
	if db.Engine == sqltest.EngineSQLite {
		return
	}
	_ = h.cmd.Wait() // it was killed
	run(t, db, "UPDATE sqllock_lease SET expires_at = "+longAgo[db.Engine]+" WHERE id = (SELECT lease_id FROM sqllock_lock WHERE name = ?)", []byte("x"))
}

func (h *holder) line(t testing.TB) string {
	t.Helper()
	line, err := h.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// mustHold waits until the holder holds "x", and returns its token.
func (h *holder) mustHold(t testing.TB) (token int64) {
	t.Helper()
	line := h.line(t)
	if n, err := fmt.Sscanf(line, "held %d", &token); n != 1 {
		t.Fatalf("%s: %v", line, err)
	}
	return token
}

func (h *holder) ask(t *testing.T, word string) {
	t.Helper()
	if _, err := h.in.WriteString(word + "\n"); err != nil {
		t.Fatal(err)
	}
}

func (h *holder) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := h.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// I9.
func TestAKilledHolderIsFollowedWhenItsLeaseExpires(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		h := startHolder(t, db)
		token := h.mustHold(t)
		l := newLocker(t, db.DB)
		mustBeHeld(t, l, "x")
		h.signal(t, syscall.SIGKILL)
		mustBeHeld(t, l, "x") // the lease of a dead holder lasts until it expires
		h.expire(t, db)
		if next := take(t, l, "x").Token(); next != token+1 {
			t.Errorf("the next holder has token %d, after %d", next, token)
		}
	})
}

// I5.
func TestAStoppedHolderLearnsOfItsEndBeforeAnythingSucceeds(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		h := startHolder(t, db)
		h.mustHold(t)
		h.signal(t, syscall.SIGSTOP)
		l := newLocker(t, db.DB)
		take(t, l, "x") // after the lease has expired
		h.ask(t, "release")
		h.signal(t, syscall.SIGCONT)
		if got := h.line(t); !strings.Contains(got, "lock was lost") {
			t.Errorf("the stopped holder %s; want ErrLost", got)
		}
		mustBeHeld(t, newLocker(t, db.DB), "x") // the second holder still holds it
	})
}

// This is what Guard and tokens are for: the holder finds its context alive, is stopped, and writes when it continues,
// like a program that checks the context before the write only.
func TestAStoppedHolderWritesWhatIsStaleUnlessItIsGuardedOrFenced(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		to := newRegister(t, db, "x")
		h := startHolder(t, db)
		h.mustHold(t)
		h.ask(t, "write")
		if got := h.line(t); got != "wrote: <nil>" {
			t.Fatal(got)
		}
		h.signal(t, syscall.SIGSTOP)
		next := take(t, newLocker(t, db.DB), "x")
		if err := errors.Join(to.Guard(t.Context(), next), to.Fence(t.Context(), next)); err != nil {
			t.Fatal(err)
		}
		h.ask(t, "guard")
		h.ask(t, "fence")
		h.signal(t, syscall.SIGCONT)
		if got := h.line(t); !strings.HasPrefix(got, "guarded: sqllock: guard \"x\": lock") {
			t.Errorf("the stopped holder %s; want that its lock is over", got)
		}
		if got := h.line(t); got != "fenced: "+history.ErrOutdone.Error() {
			t.Errorf("the stopped holder %s; want %v", got, history.ErrOutdone)
		}
		if err := history.CheckJournal(to.journal(t)); err != nil {
			t.Error(err)
		}

		h.ask(t, "write")
		if got := h.line(t); got != "wrote: <nil>" {
			t.Fatal(got)
		}
		if err := history.CheckJournal(to.journal(t)); err == nil {
			t.Error("a stale line was not found")
		}
	})
}
