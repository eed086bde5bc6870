package run

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/database"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/flags"
	"github.com/sqllock/sqllock/internal/lockname"
	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/pg"
)

// request has the arguments and flags of sqllock run.
type request struct {
	database.Flags
	name        string
	command     []string
	kind        string
	ttl         time.Duration
	shared      bool
	limit       int // 0: no limit
	atLeast     time.Duration
	wait        waitTime
	giveUpEarly bool
	onHeld      int
	owner       string // empty: the default
	killAfter   time.Duration
	verbose     bool
}

// AddFlags adds the flags to a command.
func (r *request) AddFlags(cmd *cobra.Command) {
	r.Flags.AddFlags(cmd)
	r.kind, r.wait.forever = database.KindLease, true
	f := cmd.Flags()
	flags.AddChoice(cmd, &r.kind, "kind", "`kind` of lock: lease or session", database.KindLease, database.KindSession)
	f.DurationVar(&r.ttl, "ttl", 15*time.Second, "`time` that the lock outlives a holder that was killed")
	f.BoolVar(&r.shared, "shared", false, "hold it together with all others who ask with --shared")
	f.IntVar(&r.limit, "limit", 0, "hold it together with others, `N` at most (default: alone)")
	f.DurationVar(&r.atLeast, "at-least", 0, "`time` that NAME stays taken for, even if COMMAND ends sooner")
	f.Var(&r.wait, "wait", "longest `time` to wait for lock and database, 0 or forever")
	flags.Complete(cmd, "wait", "0", "10s", "1m", "1h", forever)
	f.BoolVar(&r.giveUpEarly, "give-up-early", false, "do not wait for a lease that would outlast --wait")
	f.IntVar(&r.onHeld, "on-held", exit.Held, "exit `code` when somebody else holds it; with 0 nothing is said")
	f.StringVar(&r.owner, "owner", "", "`text` that others see as the holder (default: made of the command; of a session sqllock@HOST:PID)")
	f.BoolVarP(&r.verbose, "verbose", "v", false, "say on stderr what happens to the lock")
	f.DurationVar(&r.killAfter, "kill-after", 0, "`time` from SIGTERM to SIGKILL when the lock was lost (default: an eighth of --ttl, 10s at most)")
}

// waitTime is the value of --wait.
type waitTime struct {
	limit   time.Duration
	forever bool
}

const forever = "forever"

func (w *waitTime) Set(text string) error {
	if text == forever {
		*w = waitTime{forever: true}
		return nil
	}
	limit, err := time.ParseDuration(text)
	if err != nil {
		return errors.New("it is a time such as 90s or 5m, 0 or forever" + flags.MissingUnit(text))
	}
	*w = waitTime{limit: limit}
	return nil
}

func (w *waitTime) String() string {
	if w.forever {
		return forever
	}
	return w.limit.String()
}

func (w *waitTime) Type() string { return "time" }

// ends reports whether sqllock waits, but not forever.
func (w *waitTime) ends() bool { return !w.forever && w.limit > 0 }

// maxOwner is the size of the owner column of a lease.
const maxOwner = 255

// parse reads the arguments, and validates them and the flags.
func (r *request) parse(cmd *cobra.Command, args []string) error {
	dash := cmd.ArgsLenAtDash()
	if dash == 0 && len(args) > 2 && args[1] == "--" { // run -- -NAME -- COMMAND
		args = slices.Delete(args, 1, 2)
		dash = 1
	}
	if dash != 1 || len(args) < 2 {
		return errors.New("usage: sqllock run [flags] NAME -- COMMAND [ARGUMENT…]")
	}
	r.name, r.command = args[0], args[1:]
	given := cmd.Flags().Changed
	switch {
	case r.wait.limit < 0:
		return errors.New("--wait is negative")
	case r.killAfter < 0:
		return errors.New("--kill-after is negative")
	case r.atLeast < 0:
		return errors.New("--at-least is negative")
	case given("limit") && r.limit < 1:
		return errors.New("--limit is less than 1")
	case r.onHeld < 0 || r.onHeld > 255:
		return errors.New("--on-held is not an exit code: those are 0 to 255")
	case given("owner") && r.owner == "":
		return errors.New("--owner is empty: leave it out, or name the holder")
	case len(r.owner) > maxOwner:
		return fmt.Errorf("--owner has %d bytes, the limit is %d", len(r.owner), maxOwner)
	}
	if !given("kill-after") {
		r.killAfter = min(r.ttl/8, 10*time.Second) // before others can take the lock: that is TTL/6 after its holder learned of the loss
	}
	return errors.Join(r.CheckTables(r.kind), r.checkTogether(given), lockname.Check(r.name))
}

// checkTogether refuses combinations of flags that make no sense, and says which flag to leave out.
func (r *request) checkTogether(given func(flag string) bool) error {
	if r.kind == database.KindSession {
		for _, flag := range []string{"limit", "at-least", "give-up-early"} {
			if given(flag) {
				return fmt.Errorf("--%s is for leases: leave it out, or --kind session", flag)
			}
		}
	}
	switch {
	case r.shared && r.limit > 0:
		return errors.New("--shared is without a limit: leave out --shared or --limit")
	case r.atLeast > 0 && r.shared:
		return errors.New("--at-least is for a lock that one holds alone: leave out --at-least or --shared")
	case r.atLeast > 0 && r.limit > 0:
		return errors.New("--at-least is for a lock that one holds alone: leave out --at-least or --limit")
	case r.giveUpEarly && !r.wait.ends():
		return errors.New("--give-up-early is for a wait that ends: leave it out, or name a time with --wait")
	case given("on-held") && r.wait.forever:
		return errors.New("--on-held is for a wait that ends: leave it out, or name a time with --wait, or 0")
	}
	return nil
}

// holder returns the owner text of the lock.
func (r *request) holder() string {
	switch {
	case r.owner != "":
		return r.owner
	case r.kind == database.KindSession: // a session lock has no other record of its host and process
		return session.DefaultOwner()
	}
	return "sqllock run " + filepath.Base(r.command[0])
}

// options returns the options of the acquisition, as opposed to those of the Locker.
func (r *request) options() (opts []sqllock.Option) {
	if r.shared && r.kind == database.KindSession {
		return []sqllock.Option{pg.WithShared()} // only a PostgreSQL Locker gets here: session refuses --shared for the others
	}
	if r.shared {
		opts = append(opts, leasetable.WithShared())
	}
	if r.limit > 0 {
		opts = append(opts, leasetable.WithLimit(r.limit))
	}
	if r.atLeast > 0 {
		opts = append(opts, leasetable.WithHoldAtLeast(r.atLeast))
	}
	if r.giveUpEarly {
		opts = append(opts, leasetable.WithGiveUpEarly())
	}
	return opts
}
