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

// process is a child process, as seen by its parent.
type process struct {
	place   int
	cmd     *exec.Cmd
	in      io.WriteCloser
	began   time.Time     // the beginning of the run, on which the clock is based
	answers []chan answer // by worker; each has a capacity of one
	gone    chan struct{} // closed when the process has ended and all its output was read
	keep    atomic.Bool   // its workers keep their locks

	replaced  chan struct{} // closed when the process was replaced, or the run is over
	successor *process      // written before replaced is closed; nil if the run is over
}

type answer struct {
	text string
	at   time.Duration
}

// startProcess starts the test program as a child process, with this number of workers.
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

// listen distributes the answers until the process ends.
func (p *process) listen(out io.Reader) {
	defer close(p.gone)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		at := time.Since(p.began)
		id, text, _ := strings.Cut(lines.Text(), " ")
		if worker, err := strconv.Atoi(id); err == nil && worker < len(p.answers) {
			p.answers[worker] <- answer{text, at}
		}
	}
	_ = p.cmd.Wait() // the exit status does not matter
}

// ask sends a request to a worker. It returns false if the process ends before it answers.
func (p *process) ask(worker int, question string) (text string, at Span, answered bool) {
	at.From = time.Since(p.began)
	// The code below detects an ended process.
	_, _ = io.WriteString(p.in, strconv.Itoa(worker)+" "+question+"\n")
	var a answer
	select {
	case a = <-p.answers[worker]:
	case <-p.gone:
		select {
		case a = <-p.answers[worker]: // the last answer
		default:
			return "", at, false
		}
	}
	at.To = a.at
	return a.text, at, true
}

func (p *process) signal(sig syscall.Signal) error { return p.cmd.Process.Signal(sig) }

// replace hands the workers to the next process, if there is one.
func (p *process) replace(successor *process) {
	p.successor = successor
	close(p.replaced)
}
