package fleet

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/sqllock/sqllock/bench/internal/lock"
)

// worker is a process of a fleet.
type worker struct {
	out     *json.Encoder
	clients []lock.Client

	ctx     context.Context //nolint:containedctx // of what goes on until the next cancel
	stop    context.CancelFunc
	running sync.WaitGroup

	mu    sync.Mutex     // guards what follows, and out
	spans [][]Span       // of each client
	held  []lock.Release // what take has acquired
	err   error          // the first one
}

// patience is for how long a worker waits for what it has cancelled. Some libraries do not end a wait before.
const patience = 12 * time.Second

// Work is the process: it does what the lines of in say until in ends.
func Work(in io.Reader, out io.Writer) error {
	w := &worker{out: json.NewEncoder(out)}
	w.ctx, w.stop = context.WithCancel(context.Background())
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return err
		}
		var a answer
		if err := w.do(r, &a); err != nil {
			a.Error = err.Error()
		}
		if err := w.write(a); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (w *worker) write(a answer) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Encode(a)
}

func (w *worker) do(r request, a *answer) error {
	switch r.Op {
	case opOpen:
		return w.open(r)
	case opPair:
		return w.pair(r.Name)
	case opRun:
		w.each(func(ctx context.Context, i int, c lock.Client) error { return w.loop(ctx, i, c, r.Name, r.Hold) })
	case opTake:
		w.each(func(ctx context.Context, _ int, c lock.Client) error { return w.take(ctx, c, r.Name) })
	case opGive:
		return w.give()
	case opCancel:
		return w.cancel(a)
	case opClose:
		return w.close()
	default:
		return fmt.Errorf("no such operation: %q", r.Op)
	}
	return nil
}

func (w *worker) open(r request) error {
	kind, ok := lock.Find(r.Kind)
	if !ok {
		return fmt.Errorf("no such kind: %q", r.Kind)
	}
	for range r.Clients {
		c, err := kind.Open(w.ctx, r.Address)
		if err != nil {
			return err
		}
		w.clients = append(w.clients, c)
	}
	w.spans = make([][]Span, len(w.clients))
	return nil
}

func (w *worker) pair(name string) error {
	ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
	defer cancel()
	for i, c := range w.clients {
		release, err := c.Acquire(ctx, fmt.Sprint(name, " ", i))
		if err != nil {
			return err
		}
		if err := release(ctx); err != nil {
			return err
		}
	}
	return nil
}

// each calls f for each client in the background.
func (w *worker) each(f func(ctx context.Context, i int, c lock.Client) error) {
	ctx := w.ctx
	for i, c := range w.clients {
		w.running.Go(func() {
			if err := f(ctx, i, c); err != nil && ctx.Err() == nil {
				w.mu.Lock()
				defer w.mu.Unlock()
				if w.err == nil {
					w.err = err
				}
			}
		})
	}
}

// loop goes on until ctx ends. A name that is granted after that is released at once.
func (w *worker) loop(ctx context.Context, i int, c lock.Client, name string, hold time.Duration) error {
	for first := true; ctx.Err() == nil; first = false {
		release, err := c.Acquire(ctx, name)
		if err != nil {
			return err
		}
		s := Span{From: time.Now().UnixNano()}
		if first {
			if err := w.write(answer{Taken: s.From}); err != nil {
				return err
			}
		}
		if ctx.Err() == nil && hold > 0 {
			<-time.After(hold)
		}
		s.To = time.Now().UnixNano()
		err = release(context.WithoutCancel(ctx))
		w.mu.Lock()
		w.spans[i] = append(w.spans[i], s)
		w.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// take reports the grant, unless ctx has ended: then it releases the name.
func (w *worker) take(ctx context.Context, c lock.Client, name string) error {
	release, err := c.Acquire(ctx, name)
	now := time.Now().UnixNano()
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return release(context.WithoutCancel(ctx))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = append(w.held, release)
	return w.out.Encode(answer{Taken: now})
}

func (w *worker) give() error {
	w.mu.Lock()
	held := w.held
	w.held = nil
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var errs []error
	for _, release := range held {
		errs = append(errs, release(ctx))
	}
	return errors.Join(errs...)
}

func (w *worker) cancel(a *answer) error {
	w.stop()
	ended := make(chan struct{})
	go func() {
		w.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(patience):
		return errors.New("a wait does not end")
	}
	err := errors.Join(w.err, w.give())
	a.Spans = w.spans
	w.spans, w.err = make([][]Span, len(w.clients)), nil
	w.ctx, w.stop = context.WithCancel(context.Background())
	return err
}

func (w *worker) close() error {
	var errs []error
	for _, c := range w.clients {
		errs = append(errs, c.Close())
	}
	w.clients = nil
	return errors.Join(errs...)
}
