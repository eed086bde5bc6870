//go:build unix

package history

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// process is a child process, as its parent sees it.
type process struct {
	place   int
	cmd     *exec.Cmd
	in      io.WriteCloser
	began   time.Time     // of the whole run: the clock
	answers []chan answer // by worker; each has room for one
	gone    chan struct{} // closed when the process has ended and everything it said was read
	keep    atomic.Bool   // its workers keep the locks that they have

	replaced  chan struct{} // closed when the process was replaced, or the run is over
	successor *process      // written before replaced is closed; nil if the run is over
}

type answer struct {
	text string
	at   time.Duration
}

// startProcess starts the test program as the child of a place, with as many workers.
func startProcess(ctx context.Context, place int, env []string, workers int, began time.Time) (*process, error) {
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	in, errIn := cmd.StdinPipe()
	out, errOut := cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut, cmd.Start()); err != nil {
		return nil, err
	}
	p := &process{
		place: place, cmd: cmd, in: in, began: began, answers: make([]chan answer, workers),
		gone: make(chan struct{}), replaced: make(chan struct{}),
	}
	for i := range p.answers {
		p.answers[i] = make(chan answer, 1)
	}
	go p.listen(out)
	return p, nil
}

// listen hands out the answers until the process ends.
func (p *process) listen(out io.Reader) {
	defer close(p.gone)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		at := time.Since(p.began)
		id, text, _ := strings.Cut(lines.Text(), " ")
		if worker, err := strconv.Atoi(id); err == nil && worker < len(p.answers) {
			p.answers[worker] <- answer{text, at}
		}
	}
	_ = p.cmd.Wait() // how it ended does not matter
}

// ask has a worker do something. It reports false when the process ends before it answers.
func (p *process) ask(worker int, question string) (text string, at Span, answered bool) {
	at.From = time.Since(p.began)
	_, _ = io.WriteString(p.in, strconv.Itoa(worker)+" "+question+"\n") // that it has ended is seen below
	var a answer
	select {
	case a = <-p.answers[worker]:
	case <-p.gone:
		select {
		case a = <-p.answers[worker]: // the last words
		default:
			return "", at, false
		}
	}
	at.To = a.at
	return a.text, at, true
}

func (p *process) signal(sig syscall.Signal) error { return p.cmd.Process.Signal(sig) }

// replace hands the workers on to the next process, if any.
func (p *process) replace(successor *process) {
	p.successor = successor
	close(p.replaced)
}
