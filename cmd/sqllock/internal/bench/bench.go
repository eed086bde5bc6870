// Package bench is the command sqllock bench: it measures what a database can do with locks.
package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/console"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/database"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/flags"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
	"github.com/sqllock/sqllock/schema"
)

const benchHelp = `Measures what this database can do with locks, from this machine, one after the
other:
  - the bare round trip, SELECT 1
  - for leases, two bare statements that write a row each, and commit
  - a free lock acquired and released, again and again
  - the same with 16 names at once
  - the handoff of a lock among four who wait for it as processes do, and
    give it back at once: the time from the beginning of the release
    until another one has it
  - the renewal of 1,000 locks of one holder: of a lease as often as can
    be, of session locks the heartbeats of their connections as they come

It writes to the database, as fast as it can, and takes some 20 connections and
1,000 locks: other users of a busy server will notice. Its names begin with
"sqllock bench/" and are nobody else's. At the end, also after Ctrl-C, its locks
are released and the rows of its names deleted. If it is killed with SIGKILL
they stay, and sqllock ls shows them as expired.

Of each there is how many were measured, the median, the 99th percentile and the
mean of the times that one took, and how many there were a second, which is 1 /
mean, or 16 / mean of the 16 names.`

// benchGrace is the time that running statements get to finish after a signal.
const benchGrace = time.Second

// barEvery is the interval at which the progress is drawn.
const barEvery = 100 * time.Millisecond

// bench is one call of sqllock bench.
type bench struct {
	*console.Console
	database.Flags
	kind     string
	duration time.Duration
	json     bool

	db    *database.Database
	mine  string          // prefix of the lock names, and the owner of the leases
	wrote bool            // rows may have been written
	over  <-chan struct{} // closed by a signal
}

// Command returns the command.
func Command(c *console.Console) *cobra.Command {
	b := &bench{Console: c, kind: database.KindLease, mine: "sqllock bench/" + rand.Text() + "/"}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure what a database can do with locks; it writes",
		Long:  flags.Help(benchHelp, flags.SeeAlso),
		Args:  flags.NoArguments,
		RunE:  b.run,
	}
	b.AddFlags(cmd)
	f := cmd.Flags()
	flags.AddChoice(cmd, &b.kind, "kind", "`kind` of lock: lease or session", database.KindLease, database.KindSession)
	f.DurationVar(&b.duration, "duration", 2*time.Second, "`time` for each of the measurements")
	flags.AddJSON(cmd, &b.json)
	return cmd
}

func (b *bench) run(cmd *cobra.Command, _ []string) (err error) {
	if err := b.check(); err != nil {
		return exit.With(exit.Usage, err)
	}
	b.db, err = b.OpenDatabase(cmd, b.Console)
	if err != nil {
		return err
	}
	b.db.PrepareIfDirect(cmd.Context())
	defer b.db.Close()
	l, err := b.locker(database.LookTTL)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	received := process.ReceiveSignals()
	defer received.Stop()
	interrupted, done := received.Interrupting(cmd.Context())
	b.over = interrupted.Done()
	// Running statements may finish by themselves: canceling one would not stop it on the server.
	ctx, cancel := context.WithCancel(context.WithoutCancel(interrupted))
	defer cancel()
	defer context.AfterFunc(interrupted, func() { time.AfterFunc(benchGrace, cancel) })()
	r, err := b.measure(ctx, l)
	left := l.Close()
	if b.wrote {
		left = errors.Join(left, b.clean(cmd.Context()))
	}
	var interrupt *process.InterruptError
	switch {
	case errors.As(done(), &interrupt):
		ended := fmt.Errorf("ended by a signal (%v)", interrupt.Signal)
		return process.EndedBy(interrupt.Signal, errors.Join(ended, left))
	case errors.Is(err, sqllock.ErrSchema):
		return exit.With(exit.Unavailable, b.SchemaError(err))
	case err != nil || left != nil:
		return exit.With(exit.Unavailable, errors.Join(err, left))
	case b.json:
		return exit.With(exit.Output, console.WriteJSON(b.Stdout, r, "  "))
	}
	return exit.With(exit.Output, r.print(b.Stdout))
}

func (b *bench) check() error {
	if b.duration <= 0 {
		return errors.New("--duration is not more than 0")
	}
	return b.CheckTables(b.kind)
}

// measure runs all parts in order.
func (b *bench) measure(ctx context.Context, l database.Locker) (r report, err error) {
	r = report{Kind: b.kind, Duration: b.duration.Seconds()}
	if b.kind == database.KindLease {
		if err := b.db.Prepare(ctx, b.Tables); err != nil {
			return r, err
		}
	}
	if r.Server, err = server(ctx, b.db); err != nil {
		return r, err
	}
	b.wrote = true
	if err := b.pair(ctx, l, firstName); err != nil { // fails if locks do not work on this database
		return r, err
	}
	parts := b.parts(l)
	line := b.StatusLine()
	defer line.FlushSoon()
	began := time.Now()
	for i, p := range parts {
		stop := line.Meanwhile(ctx, 0, barEvery, func(context.Context) {
			share := float64(time.Since(began)) / float64(b.duration) / float64(len(parts))
			line.Show(fmt.Sprintf("%d of %d  %-*s  %s", i+1, len(parts), widestName, p.title, bar(min(share, 1), 30)))
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
func (b *bench) locker(ttl time.Duration) (database.Locker, error) {
	if b.kind == database.KindSession {
		return b.db.Session(ttl, database.Operator+" bench", false)
	}
	l, err := b.db.Lease(b.Tables, ttl, b.mine)
	return database.AnyKind(l), err
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
	if b.kind != database.KindLease {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), database.InspectTimeout)
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
	query := func(text string) string { return b.db.Rebind(b.Tables.Rewrite(b.db.Dialect, text)) }
	var count int
	if err := b.db.GetContext(ctx, &count, query("SELECT COUNT(*) FROM "+rows), args...); err != nil || count == 0 {
		return err
	}
	text := "DELETE FROM " + rows
	if b.db.Dialect == schema.MySQL {
		text += fmt.Sprintf(" ORDER BY %s LIMIT %d", order, count)
	}
	_, err := b.db.ExecContext(ctx, query(text), args...)
	return err
}

// server returns the name and version of the database server.
func server(ctx context.Context, db *database.Database) (string, error) {
	query, name := "SELECT pg_catalog.current_setting('server_version')", "PostgreSQL "
	switch db.Dialect {
	case schema.MySQL:
		query, name = "SELECT VERSION()", "MySQL "
	case schema.SQLite:
		query, name = "SELECT sqlite_version()", "SQLite "
	}
	ctx, cancel := context.WithTimeout(ctx, database.ConnectTimeout)
	defer cancel()
	var version string
	err := db.GetContext(ctx, &version, query)
	version, _, _ = strings.Cut(version, " ") // cut off the name of the package
	if before, _, mariadb := strings.Cut(version, "-MariaDB"); mariadb {
		name, version = "MariaDB ", before
	}
	return name + version, err
}
