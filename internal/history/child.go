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
)

// patience is how long a worker waits for a lock.
const patience = 500 * time.Millisecond

// notice is how long a process may go on before it has noticed how late it is. When it was stopped, the
// timer that ends its locks and the question that it was asked meanwhile come at the same time.
const notice = 2 * time.Millisecond

// What a child process is asked, a line each: "WORKER take NAME", "WORKER check" and so on. It
// answers "WORKER" and one of the words below, or what went wrong.
const (
	doTake    = "take" // Acquire
	doTry     = "try"  // TryAcquire
	doCheck   = "check"
	doRelease = "release"

	didTake    = "taken"
	didRefuse  = "refused"
	isAlive    = "alive"
	isLost     = "lost" // of check and of release
	didRelease = "released"
)

// Serve is what a child process does: what it is asked, until its input ends.
func Serve(ctx context.Context, l sqllock.Locker, in io.Reader, out io.Writer) error {
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
			all.Go(func() { // a line is written at once
				var lock sqllock.Lock
				for question := range questions {
					fmt.Fprintln(out, id, reply(ctx, l, &lock, question))
				}
			})
		}
		questions <- question
	}
	return lines.Err()
}

// reply does what a worker is asked, and keeps its lock.
func reply(ctx context.Context, l sqllock.Locker, lock *sqllock.Lock, question string) string {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	verb, name, _ := strings.Cut(question, " ")
	var err error
	switch verb {
	case doTake, doTry:
		take := l.Acquire
		if verb == doTry {
			take = l.TryAcquire
		}
		*lock, err = take(ctx, name)
		if err == nil {
			return didTake
		}
		if errors.Is(err, sqllock.ErrHeld) || ctx.Err() != nil {
			return didRefuse
		}
	case doCheck:
		wait(ctx, notice)
		if (*lock).Context().Err() == nil {
			return isAlive
		}
		return isLost
	case doRelease:
		if err = (*lock).Release(ctx); err == nil {
			return didRelease
		}
		if errors.Is(err, sqllock.ErrLost) {
			return isLost
		}
	}
	return strings.ReplaceAll(fmt.Sprint("failed: ", err), "\n", " ")
}
