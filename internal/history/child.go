//go:build unix

package history

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/stall"
)

// patience is how long a worker waits for a lock.
const patience = 500 * time.Millisecond

// writing bounds a holder's write. It is longer than the time for which a process is stopped, so that the write can
// commit after the stop.
const writing = 10 * time.Second

// notice is how long a process may need to notice that it is late. After a stop, the timer that ends its locks and the
// question that arrived meanwhile become due at the same time. On a busy machine it may be longer before the timer has
// run: within recently after a stall, an answer waits for noticeLate.
const (
	notice     = 2 * time.Millisecond
	noticeLate = 50 * notice
	recently   = time.Second
)

// The requests to a child process, one per line: "WORKER take NAME", "WORKER check" and so on. It answers "WORKER" and
// one of the words below, or an error.
const (
	doTake    = "take" // Acquire; followed by a name, and a limit
	doTry     = "try"  // TryAcquire; the same
	doCheck   = "check"
	doGuard   = "guard"
	doFence   = "fence"
	doRelease = "release"
	doExtend  = "extend" // followed by a duration
	doExport  = "export" // followed by a duration
	doAdopt   = "adopt"  // followed by a ticket

	didTake    = "taken" // followed by the token, if the lock has one
	didRefuse  = "refused"
	isAlive    = "alive"
	isLost     = "lost"
	didWrite   = "written"
	isOutdone  = "outdone"
	didRelease = "released"
	didExtend  = "extended"
	didExport  = "exported" // followed by a ticket
	isMistaken = "mistaken" // a release said that another holder has the lock, but there was none
)

// Register is what holders write to. An error that matches sqllock.ErrLost or sqllock.ErrExpired means that the lock
// has ended. After any error except ErrOutdone the line may have been written.
type Register interface {
	// Guard writes a line that commits only if the lock is held, whatever happens meanwhile.
	Guard(ctx context.Context, lock sqllock.Lock) error
	// Fence writes a line unless there is one with a higher token; then it returns ErrOutdone.
	Fence(ctx context.Context, lock sqllock.Lock) error
}

// ErrOutdone means that the Register has a line with a higher token.
var ErrOutdone = errors.New("somebody with a higher token was here")

// Serve runs in a child process. It carries out requests until its input ends.
func Serve(ctx context.Context, l sqllock.Locker, in io.Reader, out io.Writer) error {
	return ServeWriters(ctx, l, nil, in, out)
}

// ServeWriters is like Serve for a child process whose holders write.
func ServeWriters(ctx context.Context, l sqllock.Locker, register Register, in io.Reader, out io.Writer) error {
	stalls := stall.Start()
	defer stalls.Stop()
	var all sync.WaitGroup
	defer all.Wait()
	workers := make(map[string]chan string)
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		id, question, _ := strings.Cut(lines.Text(), " ")
		questions := workers[id]
		if questions == nil {
			questions = make(chan string)
			defer close(questions)
			workers[id] = questions
			all.Go(func() { // Fprintln writes each line in one call
				c := &client{locker: l, register: register, stalls: stalls}
				for question := range questions {
					fmt.Fprintln(out, id, c.reply(ctx, question))
				}
			})
		}
		questions <- question
	}
	return lines.Err()
}

// client is a worker in its process.
type client struct {
	locker   sqllock.Locker
	register Register
	stalls   *stall.Watch
	lock     sqllock.Lock // the last lock that it acquired
}

// reply carries out a request.
func (c *client) reply(ctx context.Context, question string) string {
	verb, argument, _ := strings.Cut(question, " ")
	limit := patience
	if verb == doGuard || verb == doFence {
		limit = writing
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var err error
	switch verb {
	case doTake:
		return c.taken(ctx, c.locker.Acquire, argument)
	case doTry:
		return c.taken(ctx, c.locker.TryAcquire, argument)
	case doCheck:
		pause := notice
		if c.stalls.Longest(time.Now().Add(-recently)) > 0 {
			pause = noticeLate
		}
		wait(ctx, pause)
		if c.lock.Context().Err() == nil {
			return isAlive
		}
		return isLost
	case doGuard:
		if err = c.register.Guard(ctx, c.lock); err == nil {
			return didWrite
		}
	case doFence:
		if err = c.register.Fence(ctx, c.lock); err == nil {
			return didWrite
		}
	case doRelease:
		if err = c.release(ctx); err == nil {
			return didRelease
		}
	case doExtend:
		if err = c.extend(ctx, argument); err == nil {
			return didExtend
		}
	case doExport:
		var ticket string
		if ticket, err = c.export(ctx, argument); err == nil {
			return didExport + " " + ticket
		}
	case doAdopt:
		var lock sqllock.Lock
		if lock, err = c.locker.(Mover).Adopt(ctx, argument); err == nil {
			return c.took(lock)
		}
	}
	switch {
	case errors.Is(err, sqllock.ErrLost), errors.Is(err, sqllock.ErrExpired), errors.Is(err, sqllock.ErrReleased):
		return isLost
	case errors.Is(err, ErrOutdone):
		return isOutdone
	case errors.Is(err, errMistaken):
		return isMistaken
	}
	return failed(err)
}

// taken acquires a lock.
func (c *client) taken(ctx context.Context, take func(context.Context, string, ...sqllock.Option) (sqllock.Lock, error), argument string) string {
	name, opts := c.wanted(argument)
	lock, err := take(ctx, name, opts...)
	switch {
	case err == nil:
		return c.took(lock)
	case errors.Is(err, sqllock.ErrHeld) || ctx.Err() != nil || c.unfit(err):
		return didRefuse
	}
	return failed(err)
}

// took stores a lock as the worker's.
func (c *client) took(lock sqllock.Lock) string {
	c.lock = lock
	if fenced, ok := lock.(interface{ Token() int64 }); ok {
		return fmt.Sprint(didTake, " ", fenced.Token())
	}
	return didTake
}

func failed(err error) string {
	return strings.ReplaceAll(fmt.Sprint("failed: ", err), "\n", " ")
}
