// Package run is the command sqllock run: it takes a lock, runs a command under it, and releases the lock.
package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/console"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/database"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/flags"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
	"github.com/sqllock/sqllock/leasetable"
)

const runHelp = `Takes the lock NAME, runs COMMAND with the standard input, output and error of
sqllock, and releases the lock when COMMAND ends. While somebody else holds the
lock, sqllock waits, unless --wait says otherwise. So it does while the database
cannot be reached, restarts, has no connection left or is a standby, also at
first, and says so once: a failover keeps no job from being run. With --wait 0,
and for what does not pass by itself, such as a wrong password or missing
tables, it ends at once.

The lock is a lease by default: a row of a table, renewed while the command
runs, and free --ttl after sqllock was killed or cut off. With --kind session it
is an advisory lock (GET_LOCK on MySQL and MariaDB) that is free when sqllock's
connection ends; it needs no table.

With --at-least a lease stays taken until so long after it was acquired, however
soon the command ends and whether it succeeds or fails: what cron starts on many
machines at about the same time runs once. It is free before if the lock was
lost or sqllock was killed, and at once if the command could not be started.

With --limit N up to N hold a lease together; while they ask with different N,
the smallest N of those who hold it counts. With --shared any number hold the
lock together, and nobody holds it alone meanwhile: leases, and session locks on
PostgreSQL. Each of them has a token of its own.

When the lock is lost, the command is sent SIGTERM and, --kill-after later,
SIGKILL, and so is every process in its process group. When its input or output
is a terminal it shares the group of sqllock, for keys to reach it, and only the
command itself is ended. Otherwise it has a session of its own, and /dev/tty
does not work. On Windows the command alone is ended, at once; what it has
started runs on. A holder that cannot renew its lock learns of the loss a sixth
of --ttl before anybody else can take it: a --kill-after that is shorter, as by
default, keeps two commands from running at once even if one ignores SIGTERM. It
cannot where a lock is free at once: that of a session whose connection the
server has ended, or one that was released by force. In the same way what is
left of the group is ended, before the lock is released, if a signal that is not
passed on has ended the command, such as SIGKILL when memory is short.

SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are passed on to the group
of the command; while sqllock still waits for the lock they end it. SIGWINCH is
passed on, too, and SIGTSTP stops sqllock and the group until SIGCONT. On a
terminal the command gets what keys send by itself, and SIGINT and SIGQUIT are
not passed on; a key stops both, but a SIGTSTP from elsewhere sqllock alone.
SIGHUP, SIGINT and the signals of job control stay ignored if they were, as by
nohup; no other signal does.

While it waits and standard error is a terminal, sqllock says there for whom,
since when and how long is left. With --verbose it says which database it is and
what happens to the lock: who is waited for, that it was acquired, after how
long and with which token, that a renewal failed or is overdue or the lock lost,
and why, the exit code of the command, and how long the lock was held. With
--log-format json all that sqllock itself says there is one JSON object a line,
with time, level and msg, also the error it ends with, which has its exit_code;
the waiting is not shown then.

If sqllock itself is killed (SIGKILL), so is the command on Linux, but not what
the command has started, nor a command that changes its user, such as sudo;
elsewhere the command runs on. A lease is free --ttl later, whatever still runs,
and a session lock at once. A command also runs on while sqllock alone is
stopped: by SIGSTOP, or after stty tostop by SIGTTOU. A command that runs as
another user cannot be ended when the lock is lost: write
sudo sqllock run … -- job, not sqllock run … -- sudo job.`

const runExample = `  sqllock run nightly-report -- ./report.sh --month 7
  SQLLOCK_DB=postgres://app:…@db/app sqllock run --wait 0 x -- ./cleanup
  sqllock run --db-file /etc/app/locks.env --limit 3 images -- ./render
  sqllock run --db sqlite:/var/lib/x.db --wait 30s deploy -- ./deploy.sh

  In the crontab of every machine; the others say nothing:
  0 3 * * *  sqllock run --at-least 55m --wait 0 --on-held 0 n -- ./job`

// run is one call of sqllock run.
type run struct {
	*console.Console
	request
	line *console.StatusLine
	log  *slog.Logger
	told sync.Once // for the message that the database cannot be used

	lossTold chan struct{} // has room for one; gets one when the Locker has logged that the lock was lost
}

// Command returns the command.
func Command(c *console.Console) *cobra.Command {
	r := &run{Console: c, log: slog.New(slog.DiscardHandler), lossTold: make(chan struct{}, 1)}
	cmd := &cobra.Command{
		Use:     "run [flags] NAME -- COMMAND [ARGUMENT…]",
		Short:   "Run a command while holding a lock",
		Long:    flags.Help(runHelp, EnvironmentHelp, database.Help, exit.Help()),
		Example: runExample,
		RunE:    r.run,

		DisableFlagsInUseLine: true,
	}
	r.AddFlags(cmd)
	cmd.SetFlagErrorFunc(FlagError)
	cmd.ValidArgsFunction = r.CompleteName(r.Console, cobra.ShellCompDirectiveDefault) // COMMAND may be a file
	c.LogFormat = console.LogText
	flags.AddChoice(cmd, &c.LogFormat, "log-format", "`form` of what sqllock itself says on stderr: text or json", console.LogText, console.LogJSON)
	return cmd
}

// run acquires the lock, runs the command and releases the lock.
func (r *run) run(cmd *cobra.Command, args []string) error {
	if err := r.parse(cmd, args); err != nil {
		return exit.With(exit.Usage, err)
	}
	path, err := exec.LookPath(r.command[0])
	if err != nil {
		return exit.With(process.StartCode(err), fmt.Errorf("cannot run the command: %w", err))
	}
	db, err := r.OpenDatabase(cmd, r.Console)
	if err != nil {
		return err
	}
	defer db.Close()
	r.line = r.StatusLine()
	defer r.line.Flush() // when nothing is held any more
	if r.verbose {
		r.log = r.Logger(r.line)
		db.Logger = r.log
		r.log.Info("database", db.Attrs()...)
	}
	db.Hook = r.hear
	l, err := r.locker(db)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	// Only a connection and a lease row without locks are left to close; the row would expire by itself.
	defer func() { _ = l.Close() }()

	received := process.ReceiveSignals()
	defer received.Stop()
	lock, err := r.take(cmd.Context(), db, l, received)
	if err != nil {
		return err
	}
	r.line.FlushSoon() // before the command writes there
	return r.hold(cmd.Context(), l, lock, path, received)
}

// take acquires the lock. On any error nothing is held.
func (r *run) take(ctx context.Context, db *database.Database, l database.Locker, received *process.Signals) (sqllock.Lock, error) {
	waiting, done := received.Interrupting(ctx)
	lock, err := r.acquire(waiting, db, l)
	var interrupt *process.InterruptError
	if errors.As(done(), &interrupt) {
		if lock != nil {
			err = l.Close() // a release would keep the name for --at-least, although nothing has run
		} else {
			err = nil // a consequence of the signal
		}
		return nil, process.EndedBy(interrupt.Signal, errors.Join(interrupt, err))
	}
	return lock, err
}

// acquire waits for the lock as --wait says. Its errors have an exit code.
func (r *run) acquire(ctx context.Context, db *database.Database, l database.Locker) (lock sqllock.Lock, err error) {
	if r.kind == database.KindLease {
		if err := db.Prepare(ctx, r.Tables); err != nil {
			return nil, exit.With(exit.Unavailable, err)
		}
	}
	waiting, cancel := ctx, func() {}
	stop := r.tellWaiting(ctx, db, l)
	began := time.Now()
	switch {
	case r.wait.forever:
		lock, err = l.Acquire(ctx, r.name, r.options()...)
	case r.wait.limit == 0:
		lock, err = l.TryAcquire(ctx, r.name, r.options()...)
	default:
		waiting, cancel = context.WithTimeout(ctx, r.wait.limit)
		lock, err = l.Acquire(waiting, r.name, r.options()...)
	}
	defer cancel()
	stop()
	var sharing *leasetable.SharingError
	switch {
	case err == nil:
		r.logAcquired(ctx, lock, time.Since(began))
		return lock, nil
	case errors.As(err, &sharing):
		return nil, exit.With(exit.Usage, r.sharingError(sharing))
	// The database was unusable until the end of the wait.
	case ctx.Err() == nil && waiting.Err() != nil && !errors.Is(err, sqllock.ErrHeld) && sqllock.IsRetryable(err):
		return nil, r.unusable(withoutOp(err))
	case ctx.Err() == nil && (errors.Is(err, sqllock.ErrHeld) || waiting.Err() != nil):
		return nil, r.heldBy(ctx, l, err)
	case errors.Is(err, sqllock.ErrSchema):
		return nil, exit.With(exit.Unavailable, r.SchemaError(err))
	}
	return nil, exit.With(exit.Unavailable, err)
}

// hold runs the command under the lock, and releases the lock.
func (r *run) hold(ctx context.Context, l database.Locker, lock sqllock.Lock, path string, received *process.Signals) error {
	taken := time.Now()
	// When ctx ends, hold ends the whole group of the command, not only the command.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), path)
	cmd.Args = r.command
	cmd.Env = r.childEnv(lock)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r.Stdin, r.Stdout, r.Stderr
	c, err := process.Start(cmd, received)
	if err != nil {
		return exit.With(process.StartCode(err), errors.Join(fmt.Errorf("cannot run the command: %w", err), l.Close())) // see take
	}

	work, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(lock.Context(), func() { cancel(context.Cause(lock.Context())) }) //nolint:contextcheck // the lock's own
	defer stop()
	end := func() {
		c.End(r.killAfter, func(why error) { r.warn("the command, or what it has started, runs on without the lock", why) })
	}
	var ended error // why sqllock ended the command; nil if the command ended by itself
	switch {
	case !c.Attend(work.Done()):
		ended = context.Cause(work)
		end()
	case c.Crashed():
		end() // what is left of its group, before others have the lock
	}
	r.log.LogAttrs(ctx, slog.LevelInfo, "command ended", slog.Int("exit_code", c.Result().Code))
	before := context.Cause(lock.Context()) //nolint:contextcheck // the lock has its own context
	released := before
	if lost(before) { // a lost lock needs no release, and the database may be out of reach
		r.awaitLossTold()
	} else {
		released = r.release(ctx, l, lock, taken, received)
	}
	if released == nil {
		r.log.LogAttrs(ctx, slog.LevelInfo, "lock released", slog.String("lock", r.name), slog.Duration("held", time.Since(taken)))
	}
	return r.outcome(c.Result(), ended, before, released)
}

// lost reports whether err says that the lock ended before its release.
func lost(err error) bool {
	return errors.Is(err, sqllock.ErrLost) || errors.Is(err, sqllock.ErrExpired)
}

// outcome returns the error that sqllock ends with after the command has ended with this result. before says what had
// ended the lock before its release.
func (r *run) outcome(result exit.Error, ended, before, release error) error {
	switch {
	case lost(ended):
		return exit.With(exit.Lost, fmt.Errorf("lock %q: the command was ended: %w", r.name, ended))
	case ended != nil:
		return exit.With(result.Code, fmt.Errorf("the command was ended: %w", errors.Join(ended, release)))
	case lost(before) && result.Code == 0:
		return exit.With(exit.Lost, fmt.Errorf("lock %q: the command has succeeded, but not under the lock all the time: %w", r.name, before))
	case lost(release) && result.Code == 0: // the answer to an earlier attempt to release it may have been lost
		return exit.With(exit.Lost, fmt.Errorf("the command has succeeded, but it is not confirmed that it had the lock until its end: %w", release))
	}
	result.Err = release
	return &result
}
