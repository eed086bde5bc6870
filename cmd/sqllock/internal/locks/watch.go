package locks

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/console"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/database"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/flags"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
	"github.com/sqllock/sqllock/leasetable"
)

const watchHelp = `Shows who holds which lock, and what happens to locks, until it is ended. With
PREFIX it watches the locks that ls lists with it.

On a terminal it is a table that is kept up to date, like that of sqllock ls: a
lease that should have been renewed by now has a ! after what is LEFT of it.
Below it stands what happened lately. q or Ctrl-C ends it, and the terminal is
as it was.

Otherwise, with --json or TERM=dumb, and on Windows, it prints a line for each
event: the time, the name of the lock, the event and the holder. It begins with
the locks that are held.
  held         the lock was held when watch began
  taken        by a new holder
  waited for   somebody waits for it, or more do than before
  expiring     its lease was not renewed in time
  renewed      and then it was
  expired      the holder has lost its lease: it was killed, cut off or
               stopped
  taken over   by a new holder, after the lease of another had expired
  released     by its holder, as far as can be told: of session locks, of
               shared ones, and of a lease that several have had since
               the answer before, it may have been lost or taken away
  taken away   by sqllock release --force, and nobody has taken it since
  kept         released, but not yet free (--at-least)
  free         no longer kept, or no longer expired: the dead holder was
               forgotten (sqllock purge)

It asks every --interval, two questions on connections that it keeps. What
begins and ends between two answers is not seen. A database that does not answer
is asked again, which is said.`

const (
	watchInterval = time.Second
	minInterval   = 200 * time.Millisecond

	// answerTimeout bounds a reading.
	answerTimeout = database.ConnectTimeout + database.InspectTimeout
)

// watch is one call of sqllock watch.
type watch struct {
	search
	interval time.Duration
	held     map[string]bool // the names of the leases in the last reading; only readings use it
}

func watchCommand(c *console.Console) *cobra.Command {
	w := &watch{search: search{look: look{Console: c}}}
	cmd := &cobra.Command{
		Use:   "watch [flags] [PREFIX]",
		Short: "Show what happens to locks",
		Long:  flags.Help(watchHelp, flags.SeeAlso),
		RunE:  w.run,

		DisableFlagsInUseLine: true,
	}
	w.AddFlags(cmd)
	cmd.Flags().Lookup("json").Usage = "print a JSON object on a line for each event; see sqllock help json"
	cmd.Flags().DurationVar(&w.interval, "interval", watchInterval, "`time` between two readings")
	return cmd
}

func (w *watch) parse(args []string) error {
	if err := w.search.parse(args, "usage: sqllock watch [flags] [PREFIX]"); err != nil {
		return err
	}
	if w.interval < minInterval {
		return fmt.Errorf("--interval is less than %v", minInterval)
	}
	return nil
}

func (w *watch) run(cmd *cobra.Command, args []string) error {
	if err := w.parse(args); err != nil {
		return exit.With(exit.Usage, err)
	}
	r, err := w.open(cmd, sources{w.list, w.listSessions})
	if err != nil {
		return err
	}
	defer r.close()
	r.db.SetMaxIdleConns(0) // the pool itself is used once a minute

	received := process.ReceiveSignals()
	defer received.Stop()
	ctx, cancel := context.WithCancel(cmd.Context())
	answers := w.ask(ctx, r)
	defer func() {
		cancel()
		for range answers { // until it is closed
		}
	}()
	select {
	case sig := <-received.C:
		return process.EndedBy(sig, nil)
	case first := <-answers:
		if first.err != nil || cmd.Context().Err() != nil { // such an error is not likely to pass
			return first.err
		}
		return w.follow(first, answers, received)
	}
}

// answer is a reading, or the error of one.
type answer struct {
	reading
	err error
}

// ask reads periodically until ctx ends; then it closes the channel.
func (w *watch) ask(ctx context.Context, r *reader) <-chan answer {
	answers := make(chan answer)
	go func() {
		defer close(answers)
		pause := time.NewTicker(w.interval)
		defer pause.Stop()
		for ctx.Err() == nil {
			asking, cancel := context.WithTimeout(ctx, answerTimeout)
			seen, err := r.read(asking)
			cancel()
			select {
			case answers <- answer{seen, err}:
			case <-ctx.Done():
				return
			}
			select {
			case <-pause.C:
			case <-ctx.Done():
			}
		}
	}()
	return answers
}

// display shows readings.
type display interface {
	show(seen reading, news []change) error
	trouble(err error) error // reports that the database could not be read
	redraw() error
	Handle(sig os.Signal) error // handles a signal; redraw follows
	wishes() wishes
	Close()
}

// wishes are the channels of a display, or of its user, that follow must watch.
type wishes struct {
	tick    <-chan time.Time // when to redraw
	signals <-chan os.Signal // for Handle
	quit    <-chan struct{}
}

// follow shows answers until a signal, the user or the caller ends it.
func (w *watch) follow(a answer, answers <-chan answer, received *process.Signals) (err error) {
	d, err := w.display()
	if err != nil {
		return exit.With(exit.Output, err)
	}
	defer d.Close()
	wishes, before := d.wishes(), reading{}
	for fresh := true; ; {
		switch {
		case !fresh:
			err = d.redraw()
		case a.err != nil:
			err = d.trouble(a.err)
		default:
			seen := settled(before, a.reading)
			err = d.show(seen, changes(before, seen))
			before = seen
		}
		if err != nil {
			return exit.With(exit.Output, err)
		}
		fresh = false
		select {
		case a, fresh = <-answers:
			if !fresh { // the caller has ended it
				return nil
			}
		case <-wishes.tick:
		case sig := <-wishes.signals:
			if err := d.Handle(sig); err != nil {
				return exit.With(exit.Output, err)
			}
		case <-wishes.quit:
			return nil
		case sig := <-received.C:
			return process.EndedBy(sig, nil)
		}
	}
}

// display returns a live view where that is possible, and lines otherwise.
func (w *watch) display() (display, error) {
	if w.json || runtime.GOOS == "windows" || w.Getenv("TERM") == "dumb" || !console.IsTerminal(w.Stdout) {
		return &lines{Console: w.Console, json: w.json}, nil
	}
	return openLive(w)
}

// list lists the held and the expired leases, and also those of the last reading that are free now.
func (w *watch) list(ctx context.Context, locker *leasetable.Locker) ([]leasetable.Info, error) {
	known := leasetable.Only(func(i leasetable.Info) bool { return i.Held || i.Expired || w.held[i.Name] })
	infos, err := locker.List(ctx, w.prefix, known)
	if err != nil {
		return nil, err
	}
	w.held = make(map[string]bool)
	for _, i := range infos {
		if i.Held || i.Expired {
			w.held[i.Name] = true
		}
	}
	return infos, nil
}
