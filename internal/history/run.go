//go:build unix

package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/netfault"
)

// soon bounds every wait for an event that must happen.
const soon = time.Minute

// shownWithin is how long a run continues on a slow machine until it has shown what it must show.
const shownWithin = 6 * time.Minute

// endsWithin bounds the end of the children, whose locks may have to expire.
const endsWithin = 3 * time.Minute

// lengthEnv makes every run continue until it has read that many answers. The nemesis continues meanwhile.
const lengthEnv = "SQLLOCK_TEST_HISTORY"

// Terminator is a Locker with which the nemesis can end connections.
type Terminator interface {
	sqllock.Locker
	Terminate(ctx context.Context, name string, opts ...sqllock.Option) (sqllock.Holder, bool, error)
}

// Options describes the clients, the locks and the harms of a run.
type Options struct {
	Server    string                        // host:port; the children connect to it through cables. Empty for a file
	Child     func(address string) []string // environment variables that make the test program call Serve with a Locker on address
	TTL       time.Duration                 // the session TTL of the children
	Processes int
	Workers   int      // in each process, for each name
	Names     []string // of the locks
	Writes    bool     // the children call ServeWriters, and their holders write
	Moves     bool     // the children's Locker is also a Mover; locks are extended, and handed over to other processes

	// Limits has, for each name that several clients can hold together, the limits to choose from; see [Lock.Together].
	// The children's Locker is a Sharer, and locks are not moved.
	Limits map[string][]int

	Kills, Stops, Cuts int // number of each
	Terminations       int // the Locker is a Terminator
	Others             []Harm
	Last               func(context.Context) error // called when the processes have ended; may be nil
}

// Harm is an additional action of the nemesis.
type Harm struct {
	What  string
	Times int
	Do    func(ctx context.Context, name string) error // name is that of one of the locks

	// Forgive is for a harm that lets another client acquire the lock before the holder can know.
	Forgive bool
}

// run is the state of one Run.
type run struct {
	t         *testing.T
	opts      Options
	locker    sqllock.Locker
	began     time.Time
	history   History
	cables    []*netfault.Network // by place; the nemesis cuts them
	want      porcupine.CheckResult
	processes []*process // by place; the nemesis owns it, and changes it with mu held

	mu     sync.Mutex
	counts map[string]int // guarded by mu: number of answers of each kind
	errors []string       // guarded by mu
	heard  int            // guarded by mu: number of answers that were not errors
}

// Run records a history, checks it, and returns it. At the end it checks that every name becomes free.
func Run(t *testing.T, locker sqllock.Locker, opts Options, want porcupine.CheckResult) *History {
	t.Helper()
	seed := rand.Uint64()
	r := &run{t: t, opts: opts, locker: locker, began: time.Now(), counts: make(map[string]int), want: want}
	done := r.record(seed)
	took := time.Since(r.began)
	got := r.history.Check()
	t.Logf("the history of %v is %s: %d answers: %s; the nemesis: %s",
		took.Round(time.Millisecond), got, r.answers(), counted(r.counts), counted(done))
	for _, text := range r.errors {
		t.Log(text)
	}
	if missing := r.missing(); missing != "" {
		t.Errorf("%s: nothing was shown", missing)
	}
	if r.opts.Last != nil {
		if err := r.opts.Last(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if got != want && want == porcupine.Ok {
		path := filepath.Join(os.TempDir(), fmt.Sprintf("history-%x.html", seed))
		why, err := r.history.Draw(path)
		t.Errorf("want %s; a drawing is in %s (%v)", want, path, err)
		for _, text := range why {
			t.Log(text)
		}
	}
	r.mustBeFree()
	if t.Failed() {
		t.Logf("seed %#x", seed)
	}
	return &r.history
}

// record runs the workers until the nemesis has finished, and returns the counts of the nemesis.
func (r *run) record(seed uint64) (done map[string]int) {
	r.t.Helper()
	for i := range r.opts.Processes {
		if r.opts.Server != "" {
			r.cables = append(r.cables, netfault.New(r.t, netfault.TCP(r.opts.Server), netfault.Bytes))
		}
		p, err := r.start(i)
		if err != nil {
			r.t.Fatal(err)
		}
		r.processes = append(r.processes, p)
	}
	ctx, over := context.WithCancel(r.t.Context())
	defer over()
	var workers sync.WaitGroup
	for i := range r.opts.Processes * r.workers() {
		w := &worker{
			run: r, id: i % r.perProcess(), name: r.opts.Names[i%len(r.opts.Names)],
			rand: rand.New(rand.NewPCG(seed, uint64(i))),
		}
		p := r.processes[i/r.workers()]
		workers.Go(func() { w.work(ctx, p) })
	}
	n := &nemesis{run: r, rand: rand.New(rand.NewPCG(seed, 1<<32)), done: make(map[string]int)}
	if err := n.work(ctx, length(r.t)); err != nil {
		r.t.Error(err)
	}
	over()
	r.end(&workers)
	return n.done
}

// length returns the required number of answers.
func length(t *testing.T) int {
	t.Helper()
	text := os.Getenv(lengthEnv)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", lengthEnv, err)
	}
	return n
}

// end waits for the workers and their processes to end, for a limited time.
func (r *run) end(workers *sync.WaitGroup) {
	r.t.Helper()
	late := time.AfterFunc(endsWithin, func() {
		for _, p := range r.processes {
			_ = p.cmd.Process.Kill()
		}
	})
	defer late.Stop()
	for _, p := range r.processes {
		p.replace(nil)
	}
	workers.Wait()
	for _, p := range r.processes {
		select {
		case <-p.gone:
			r.t.Error("a child process ended by itself")
		default:
		}
		_ = p.in.Close()
	}
	for _, p := range r.processes {
		<-p.gone
	}
}

// start starts the process of a place, and waits until it is connected.
func (r *run) start(i int) (*process, error) {
	address := ""
	if r.cables != nil {
		address = r.cables[i].Address()
	}
	p, err := startProcess(r.t.Context(), i, r.opts.Child(address), r.perProcess(), r.began)
	if err != nil {
		return nil, err
	}
	r.t.Cleanup(func() { _ = p.cmd.Process.Kill(); <-p.gone })
	text, _, _ := p.ask(0, fmt.Sprintf("%s of process %d", doTake, i))
	if word, _ := withToken(text); word == didTake {
		_, _, _ = p.ask(0, doRelease)
	} else {
		r.failed("connect: " + text)
	}
	return p, nil
}

// workers returns the number of workers that begin in each process.
func (r *run) workers() int { return r.opts.Workers * len(r.opts.Names) }

// perProcess returns the number of clients that a process can have: its own workers or, if locks are handed over, all
// workers.
func (r *run) perProcess() int {
	if r.opts.Moves {
		return r.opts.Processes * r.workers()
	}
	return r.workers()
}

// put replaces a process that has ended.
func (r *run) put(i int, next *process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.processes[i] = next
}

// failed records some of the error texts.
func (r *run) failed(text string) {
	r.count("failed")
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.errors) < 5 {
		r.errors = append(r.errors, fmt.Sprint(time.Since(r.began), ": ", text))
	}
}

// mustBeFree acquires every lock once more.
func (r *run) mustBeFree() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), soon)
	defer cancel()
	for _, name := range r.opts.Names {
		lock, err := r.locker.Acquire(ctx, name)
		if err != nil {
			r.t.Errorf("when everything was over: %v", err)
			return
		}
		if err := lock.Release(ctx); err != nil {
			r.t.Errorf("when everything was over: %v", err)
		}
	}
}
