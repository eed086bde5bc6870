package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/schema"
)

const benchHelp = `Measures what this database can do with locks, from this machine, one after the other:
  - the bare round trip, SELECT 1
  - for leases, two bare statements that write a row each, and commit
  - a free lock acquired and released, again and again
  - the same with 16 names at once
  - the handoff of a lock among four who wait for it as processes do, and give it back at once: the
    time from the beginning of the release until another one has it
  - the renewal of 1,000 locks of one holder: of a lease as often as can be, of session locks the
    heartbeats of their connections as they come

It writes to the database, as fast as it can, and takes some 20 connections and 1,000 locks: other
users of a busy server will notice. Its names begin with "sqllock bench/" and are nobody else's.
At the end, also after Ctrl-C, its locks are released and the rows of its names deleted. If it is
killed with SIGKILL they stay, and sqllock ls shows them as expired.

Of each there is how many were measured, the median, the 99th percentile and the mean of the times
that one took, and how many there were a second, which is 1 / mean, or 16 / mean of the 16 names.

--json prints one object: server, kind, duration_seconds, and results, an array of objects with the
fields name, count, at_once, median_seconds, p99_seconds, mean_seconds, and per_second where it was
as fast as can be: at_once / mean_seconds.`

// benchGrace is the time that running statements get to finish after a signal.
const benchGrace = time.Second

// barEvery is the interval at which the progress is drawn.
const barEvery = 100 * time.Millisecond

// bench is one call of sqllock bench.
type bench struct {
	*console
	place
	kind     string
	duration time.Duration
	json     bool

	db   *database
	mine string          // prefix of the lock names, and the owner of the leases
	over <-chan struct{} // closed by a signal
}

func benchCommand(c *console) *cobra.Command {
	b := &bench{console: c, kind: kindLease, mine: "sqllock bench/" + rand.Text() + "/"}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure what a database can do with locks; it writes",
		Long:  help(benchHelp, otherHelp),
		Args:  noArguments,
		RunE:  b.run,
	}
	b.addFlags(cmd)
	flags := cmd.Flags()
	addChoice(cmd, &b.kind, "kind", "`kind` of lock: lease or session", kindLease, kindSession)
	flags.DurationVar(&b.duration, "duration", 2*time.Second, "`time` for each of the measurements")
	flags.BoolVar(&b.json, "json", false, "print a JSON object")
	return cmd
}

func (b *bench) run(cmd *cobra.Command, _ []string) (err error) {
	if err := b.check(); err != nil {
		return fail(exitUsage, err)
	}
	b.db, err = b.openDatabase(cmd, b.console)
	if err != nil {
		return err
	}
	b.db.prepareIfDirect(cmd.Context())
	defer b.db.close()
	l, err := b.locker(lookTTL)
	if err != nil {
		return fail(exitUsage, err)
	}
	received := receiveSignals()
	defer received.stop()
	interrupted, done := received.interrupting(cmd.Context())
	b.over = interrupted.Done()
	// Running statements may finish by themselves: canceling one would not stop it on the server.
	ctx, cancel := context.WithCancel(context.WithoutCancel(interrupted))
	defer cancel()
	defer context.AfterFunc(interrupted, func() { time.AfterFunc(benchGrace, cancel) })()
	r, err := b.measure(ctx, l)
	wrote := err == nil || len(r.Results) > 0 || interrupted.Err() != nil
	left := l.Close()
	if wrote {
		left = errors.Join(left, b.clean(cmd.Context()))
	}
	var interrupt *interruptError
	switch {
	case errors.As(done(), &interrupt):
		ended := fmt.Errorf("ended by a signal (%v)", interrupt.signal)
		return fail(signalCode(interrupt.signal), errors.Join(ended, left))
	case errors.Is(err, sqllock.ErrSchema):
		return fail(exitUnavailable, b.schemaError(err))
	case err != nil || left != nil:
		return fail(exitUnavailable, errors.Join(err, left))
	case b.json:
		return fail(exitOutput, writeJSON(b.Stdout, r, "  "))
	}
	return fail(exitOutput, r.print(b.Stdout))
}

func (b *bench) check() error {
	if b.duration <= 0 {
		return errors.New("--duration is not more than 0")
	}
	return b.checkTables(b.kind)
}

// measure runs all parts in order. If it returns an error and no result, nothing was written, unless a signal came.
func (b *bench) measure(ctx context.Context, l locker) (r report, err error) {
	r = report{Kind: b.kind, Duration: b.duration.Seconds()}
	if b.kind == kindLease {
		if err := b.db.prepare(ctx, b.tables); err != nil {
			return r, err
		}
	}
	if r.Server, err = b.db.server(ctx); err != nil {
		return r, err
	}
	if err := b.pair(ctx, l, firstName); err != nil { // fails if locks do not work on this database
		return r, err
	}
	parts := b.parts(l)
	line := b.statusLine()
	began := time.Now()
	for i, p := range parts {
		stop := line.meanwhile(ctx, 0, barEvery, func(context.Context) {
			share := float64(time.Since(began)) / float64(b.duration) / float64(len(parts))
			line.show(fmt.Sprintf("%d of %d  %-*s  %s", i+1, len(parts), widestName, p.title, bar(min(share, 1), 30)))
		})
		s, err := p.run(ctx)
		stop()
		switch {
		case err != nil:
			return r, fmt.Errorf("%s: %w", p.title, err)
		case b.isOver():
			return r, context.Canceled
		}
		r.add(p, s)
	}
	return r, nil
}

// locker opens a Locker. To the waiters it is one more process.
func (b *bench) locker(ttl time.Duration) (locker, error) {
	if b.kind == kindSession {
		return b.db.session(ttl, operator+" bench", false)
	}
	l, err := b.db.lease(b.tables, ttl, b.mine)
	return anyKind(l), err
}

// isOver reports whether a signal has come.
func (b *bench) isOver() bool {
	select {
	case <-b.over:
		return true
	default:
		return false
	}
}

// clean deletes the lock rows and any lease rows that a Locker could not delete. The lock names are random, so their
// tokens need not be kept.
func (b *bench) clean(ctx context.Context) error {
	if b.kind != kindLease {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), inspectTimeout)
	defer cancel()
	last := strings.TrimSuffix(b.mine, "/") + "0" // 0 follows / in ASCII
	for _, deletion := range []struct {
		rows, order string
		args        []any
	}{
		{"sqllock_lock WHERE name >= ? AND name < ?", "name", []any{[]byte(b.mine), []byte(last)}},
		{"sqllock_lease WHERE owner = ?", "id", []any{b.mine}},
	} {
		if err := b.delete(ctx, deletion.rows, deletion.order, deletion.args); err != nil {
			return fmt.Errorf("the rows of %s could not be deleted: %w", b.mine, err)
		}
	}
	return nil
}

// delete counts the rows first and limits the statement to that number. MySQL and MariaDB lock every row that they
// scan, and MariaDB also the row after the last one; such rows belong to others. The limit stops the scan in time.
func (b *bench) delete(ctx context.Context, rows, order string, args []any) error {
	query := func(text string) string { return b.db.Rebind(b.tables.Rewrite(b.db.dialect, text)) }
	var count int
	if err := b.db.GetContext(ctx, &count, query("SELECT COUNT(*) FROM "+rows), args...); err != nil || count == 0 {
		return err
	}
	text := "DELETE FROM " + rows
	if b.db.dialect == schema.MySQL {
		text += fmt.Sprintf(" ORDER BY %s LIMIT %d", order, count)
	}
	_, err := b.db.ExecContext(ctx, query(text), args...)
	return err
}

// server returns the name and version of the database server.
func (db *database) server(ctx context.Context) (string, error) {
	query, name := "SELECT current_setting('server_version')", "PostgreSQL "
	switch db.dialect {
	case schema.MySQL:
		query, name = "SELECT VERSION()", "MySQL "
	case schema.SQLite:
		query, name = "SELECT sqlite_version()", "SQLite "
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	var version string
	err := db.GetContext(ctx, &version, query)
	version, _, _ = strings.Cut(version, " ") // cut off the name of the package
	if before, _, mariadb := strings.Cut(version, "-MariaDB"); mariadb {
		name, version = "MariaDB ", before
	}
	return name + version, err
}
