package fleet

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/sqllock/sqllock/bench/internal/child"
)

// Process is a process of a fleet.
type Process struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers chan answer
	Taken   chan time.Time // when it acquired what Take asks for, or what Run does for the first time
}

// Start starts a process.
func Start() (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &Process{cmd: exec.Command(self), answers: make(chan answer, 1), Taken: make(chan time.Time, 64)}
	p.cmd.Env = append(os.Environ(), Environ+"=1", "GOMAXPROCS=1")
	p.cmd.Stderr = os.Stderr
	child.DieWithParent(p.cmd)
	in, errIn := p.cmd.StdinPipe()
	out, errOut := p.cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut, p.cmd.Start()); err != nil {
		return nil, err
	}
	p.in = in
	go p.read(out)
	return p, nil
}

func (p *Process) read(out io.Reader) {
	defer close(p.answers)
	for decoder := json.NewDecoder(bufio.NewReader(out)); ; {
		var a answer
		if err := decoder.Decode(&a); err != nil {
			return
		}
		if a.Taken != 0 {
			p.Taken <- time.Unix(0, a.Taken)
		} else {
			p.answers <- a
		}
	}
}

func (p *Process) do(r request) ([][]Span, error) {
	line, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return nil, err
	}
	a, ok := <-p.answers
	switch {
	case !ok:
		return nil, errors.New("a process of the fleet is gone")
	case a.Error != "":
		return a.Spans, fmt.Errorf("%s: %s", r.Op, a.Error)
	}
	return a.Spans, nil
}

// Signal sends a signal to the process.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Open opens clients of a kind.
func (p *Process) Open(kind, address string, clients int) error {
	_, err := p.do(request{Op: opOpen, Kind: kind, Address: address, Clients: clients})
	return err
}

// Take has the clients acquire a name. It does not wait for that: see Taken.
func (p *Process) Take(name string) error {
	_, err := p.do(request{Op: opTake, Name: name})
	return err
}

// Give has the clients release what they have taken.
func (p *Process) Give() error {
	_, err := p.do(request{Op: opGive})
	return err
}

// End kills the process.
func (p *Process) End() {
	_ = p.cmd.Process.Kill() // it may be gone
	_ = p.cmd.Wait()
}

// Fleet is a number of processes.
type Fleet []*Process

// Grow starts processes until there are n.
func (f *Fleet) Grow(n int) error {
	for len(*f) < n {
		p, err := Start()
		if err != nil {
			return err
		}
		*f = append(*f, p)
	}
	return nil
}

// End kills all.
func (f *Fleet) End() {
	for _, p := range *f {
		p.End()
	}
	*f = nil
}

// do asks all processes at the same time.
func (f Fleet) do(r func(i int) request) ([][][]Span, error) {
	spans, errs := make([][][]Span, len(f)), make([]error, len(f))
	var all sync.WaitGroup
	for i, p := range f {
		all.Go(func() { spans[i], errs[i] = p.do(r(i)) })
	}
	all.Wait()
	return spans, errors.Join(errs...)
}

// Open opens clients in every process, and their connections if warm.
func (f Fleet) Open(kind, address string, clients int, warm string) error {
	_, err := f.do(func(int) request { return request{Op: opOpen, Kind: kind, Address: address, Clients: clients} })
	if err == nil && warm != "" {
		_, err = f.do(func(i int) request { return request{Op: opPair, Name: fmt.Sprint(warm, " ", i)} })
	}
	return err
}

// Run has all clients acquire and release a name until Cancel.
func (f Fleet) Run(name string, hold time.Duration) error {
	_, err := f.do(func(int) request { return request{Op: opRun, Name: name, Hold: hold} })
	return err
}

// Served waits until each process has had the name of Run, or until a second has passed in which none had it for the first
// time: some locks leave processes out.
func (f Fleet) Served() {
	served := 0
	for last := time.Now(); served < len(f) && time.Since(last) < time.Second; time.Sleep(20 * time.Millisecond) {
		n := 0
		for _, p := range f {
			n += min(len(p.Taken), 1)
		}
		if n > served {
			served, last = n, time.Now()
		}
	}
}

// Take has all clients acquire a name.
func (f Fleet) Take(name string) error {
	_, err := f.do(func(int) request { return request{Op: opTake, Name: name} })
	return err
}

// Cancel ends what Run and Take have begun, and returns the spans of each client.
func (f Fleet) Cancel() (clients [][]Span, err error) {
	spans, err := f.do(func(int) request { return request{Op: opCancel} })
	for i, process := range spans {
		clients = append(clients, process...)
		for len(f[i].Taken) > 0 {
			<-f[i].Taken
		}
	}
	return clients, err
}

// Close closes all clients.
func (f Fleet) Close() error {
	_, err := f.do(func(int) request { return request{Op: opClose} })
	return err
}
