package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
)

const runHelp = `Takes the lock NAME, runs COMMAND with the standard input, output and error of sqllock, and
releases the lock when COMMAND ends. While somebody else holds the lock, sqllock waits, unless
--wait says otherwise.

The lock is a lease by default: a row of a table, renewed while the command runs, and free
--ttl after sqllock was killed or cut off. The command finds its name in SQLLOCK_NAME and its
token in SQLLOCK_TOKEN, a number that rises with every holder. With --kind session it is an
advisory lock (GET_LOCK on MySQL and MariaDB) that is free when sqllock's connection ends; it
needs no table.

When the lock is lost, the command is sent SIGTERM and, --kill-after later, SIGKILL, and so is
every process in its process group. When it runs on a terminal it shares the group of sqllock,
and only the command itself is ended. The holder learns of the loss of a lease that it cannot
renew a sixth of --ttl before anybody else can take it: a shorter --kill-after keeps two
commands from running at once even if one ignores SIGTERM.

SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on to the command; while sqllock still waits for
the lock they end it.`

const runExample = `  sqllock run nightly-report -- ./report.sh --month 7
  SQLLOCK_DB=postgres://app:…@db/app sqllock run --wait 0 cleanup -- ./cleanup
  sqllock run --db sqlite:/var/lib/app/locks.db --wait 30s deploy -- sh -c './migrate && ./restart'`

// run is one call of sqllock run.
type run struct {
	*Main
	place
	name      string
	command   []string
	kind      string
	ttl       time.Duration
	wait      time.Duration
	waits     bool // for as long as it takes: no --wait was given
	killAfter time.Duration
}

func (m *Main) runCommand() *cobra.Command {
	r := &run{Main: m}
	cmd := &cobra.Command{
		Use:     "run [flags] NAME -- COMMAND [ARGUMENT…]",
		Short:   "Run a command while holding a lock",
		Long:    help(runHelp, databaseHelp, exitCodes()),
		Example: runExample,
		RunE:    r.run,

		DisableFlagsInUseLine: true,
	}
	r.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&r.kind, "kind", kindLease, "`kind` of lock: lease or session")
	flags.DurationVar(&r.ttl, "ttl", 15*time.Second, "`time` that the lock outlives a holder that was killed")
	flags.DurationVar(&r.wait, "wait", 0, "longest `time` to wait for the lock; 0: none (default: no limit)")
	flags.DurationVar(&r.killAfter, "kill-after", 10*time.Second, "`time` from SIGTERM to SIGKILL when the lock was lost")
	return cmd
}

// run takes the lock, runs the command and releases the lock.
func (r *run) run(cmd *cobra.Command, args []string) error {
	if err := r.parse(cmd, args); err != nil {
		return fail(exitUsage, err)
	}
	path, err := exec.LookPath(r.command[0])
	if err != nil {
		return fail(startCode(err), fmt.Errorf("cannot run the command: %w", err))
	}
	db, err := r.openDatabase(cmd, r.url)
	if err != nil {
		return err
	}
	defer db.close()
	l, err := r.locker(db)
	if err != nil {
		return fail(exitUsage, err)
	}
	// What is left to close is a connection and a lease that holds nothing: it would expire.
	defer func() { _ = l.Close() }()

	signals := newRelay()
	defer signals.stop()
	lock, err := r.take(cmd.Context(), db, l, signals)
	if err != nil {
		return err
	}
	return r.hold(cmd.Context(), lock, path, signals)
}

// parse reads and checks the arguments.
func (r *run) parse(cmd *cobra.Command, args []string) error {
	dash := cmd.ArgsLenAtDash()
	if dash == 0 && len(args) > 2 && args[1] == "--" { // run -- -NAME -- COMMAND
		args = slices.Delete(args, 1, 2)
		dash = 1
	}
	if dash != 1 || len(args) < 2 {
		return errors.New("usage: sqllock run [flags] NAME -- COMMAND [ARGUMENT…]")
	}
	r.name, r.command = args[0], args[1:]
	r.waits = !cmd.Flags().Changed("wait")
	switch {
	case r.wait < 0:
		return errors.New("--wait is negative")
	case r.killAfter < 0:
		return errors.New("--kill-after is negative")
	case r.kind != kindLease && r.kind != kindSession:
		return fmt.Errorf("--kind is %s or %s", kindLease, kindSession)
	}
	return errors.Join(r.checkTables(r.kind), sqllock.CheckName(r.name))
}

func (r *run) locker(db *database) (locker, error) {
	if r.kind == kindSession {
		return db.session(r.ttl)
	}
	return db.lease(r.tables, r.ttl, "sqllock run "+filepath.Base(r.command[0]))
}

// take takes the lock. On any error nothing is held.
func (r *run) take(ctx context.Context, db *database, l locker, signals *relay) (sqllock.Lock, error) {
	waiting, done := signals.interrupting(ctx)
	lock, err := r.acquire(waiting, db, l)
	var interrupt *interruptError
	if errors.As(done(), &interrupt) {
		if lock != nil {
			err = lock.Release(ctx)
		} else {
			err = nil // a consequence of the signal
		}
		return nil, fail(exitSignal+signalNumber(interrupt.signal), errors.Join(interrupt, err))
	}
	return lock, err
}

// acquire waits for the lock as --wait says. Its errors have an exit code.
func (r *run) acquire(ctx context.Context, db *database, l locker) (lock sqllock.Lock, err error) {
	if r.kind == kindLease {
		if err := db.prepare(ctx, r.tables); err != nil {
			return nil, fail(exitUnavailable, err)
		}
	}
	waiting, cancel := ctx, func() {}
	switch {
	case r.waits:
		lock, err = l.Acquire(ctx, r.name)
	case r.wait == 0:
		lock, err = l.TryAcquire(ctx, r.name)
	default:
		waiting, cancel = context.WithTimeout(ctx, r.wait)
		lock, err = l.Acquire(waiting, r.name)
	}
	defer cancel()
	switch {
	case err == nil:
		return lock, nil
	case ctx.Err() == nil && (errors.Is(err, sqllock.ErrHeld) || waiting.Err() != nil):
		return nil, r.heldBy(ctx, l, err)
	case errors.Is(err, sqllock.ErrSchema):
		return nil, fail(exitUnavailable, r.schemaError(err))
	}
	return nil, fail(exitUnavailable, err)
}

// inspectTimeout bounds asking for a holder.
const inspectTimeout = 5 * time.Second

// heldBy is the error for a lock that is held, or that was not taken before the wait was over.
// The holder is asked for if it is not known yet.
func (r *run) heldBy(ctx context.Context, l locker, err error) error {
	var seen *sqllock.HeldError
	var holder sqllock.Holder
	held := errors.As(err, &seen)
	if held {
		holder = seen.Holder
	}
	if holder.String() == "" {
		ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
		defer cancel()
		now, heldNow, failure := l.Inspect(ctx, r.name)
		if failure != nil && !held { // not even this was answered
			return fail(exitUnavailable, fmt.Errorf("%w: %w", err, failure))
		}
		holder, held = now, held || heldNow
	}
	text := fmt.Sprintf("lock %q is held", r.name)
	if !held {
		text = fmt.Sprintf("lock %q was not taken in time", r.name)
	}
	if by := holder.String(); by != "" {
		text += " by " + by
	}
	if r.wait > 0 {
		text += fmt.Sprintf(" (waited %v)", r.wait)
	}
	return fail(exitHeld, errors.New(text))
}

// hold runs the command under the lock, and releases it.
func (r *run) hold(ctx context.Context, lock sqllock.Lock, path string, signals *relay) error {
	// The end of ctx ends the whole group of the command, not only the command.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), path)
	cmd.Args = r.command
	cmd.Env = r.childEnv(lock)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r.Stdin, r.Stdout, r.Stderr
	c, err := startChild(cmd)
	if err != nil {
		return fail(startCode(err), errors.Join(fmt.Errorf("cannot run the command: %w", err), lock.Release(ctx)))
	}

	work, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(lock.Context(), func() { cancel(context.Cause(lock.Context())) }) //nolint:contextcheck // it is about the lock's
	defer stop()
	var ended error // why the command was ended, if it did not end by itself
	if !c.attend(work.Done(), signals.signals) {
		ended = context.Cause(work)
		c.end(r.killAfter, signals.signals)
	}
	return outcome(c.code(), ended, lock.Release(ctx))
}

// outcome decides how sqllock ends after the command has ended with a code.
func outcome(code int, ended, release error) error {
	lost := func(err error) bool { return errors.Is(err, sqllock.ErrLost) || errors.Is(err, sqllock.ErrExpired) }
	switch {
	case lost(ended):
		return fail(exitLost, fmt.Errorf("the command was ended: %w", ended))
	case ended != nil:
		return fail(code, fmt.Errorf("the command was ended: %w", errors.Join(ended, release)))
	case lost(release) && code == 0:
		return fail(exitLost, fmt.Errorf("the command has succeeded, but not under the lock all the time: %w", release))
	}
	return &exitError{code, release}
}

// childEnv is the environment of the command. What an outer sqllock has set is not passed on.
func (r *run) childEnv(lock sqllock.Lock) []string {
	env := slices.DeleteFunc(slices.Clone(r.Environ), func(pair string) bool {
		return strings.HasPrefix(pair, "SQLLOCK_NAME=") || strings.HasPrefix(pair, "SQLLOCK_TOKEN=")
	})
	env = append(env, "SQLLOCK_NAME="+r.name)
	if token, ok := tokenOf(lock); ok {
		env = append(env, "SQLLOCK_TOKEN="+token)
	}
	return env
}
