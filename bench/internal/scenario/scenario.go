// Package scenario has what is measured, one scenario in each file. In each, all kinds of locks take turns, round after
// round, so that other load of the machine affects all of them.
package scenario

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/sqllock/sqllock/bench/internal/fleet"
	"github.com/sqllock/sqllock/bench/internal/lock"
	"github.com/sqllock/sqllock/bench/internal/result"
	"github.com/sqllock/sqllock/bench/internal/server"
)

// Run is a run of all scenarios.
type Run struct {
	Plan    Plan
	Servers []*server.Server
	Result  *result.Result

	fleet fleet.Fleet

	mu    sync.Mutex // guards Result.Samples and names
	names int
}

// Scenario is one of the things that are measured.
type Scenario struct {
	Name string
	Run  func(ctx context.Context, r *Run) error
}

// All returns all scenarios, in the order of their execution.
func All() []Scenario {
	return []Scenario{
		{"latency", latency},
		{"throughput", throughput},
		{"fleet", contend},
		{"waiting", waiting},
		{"fault", faults},
		{"network", network},
	}
}

// Close ends the processes that the scenarios have started.
func (r *Run) Close() { r.fleet.End() }

// contender is a kind of lock with its server.
type contender struct {
	lock.Kind
	server *server.Server
}

// contenders returns the kinds for which use is true, and whose server runs.
func (r *Run) contenders(use func(lock.Kind) bool) (all []contender) {
	for _, k := range lock.Kinds() {
		for _, s := range r.Servers {
			if s.Engine == k.Engine && use(k) {
				all = append(all, contender{k, s})
			}
		}
	}
	return all
}

// waits is true for kinds that can wait for a name.
func waits(k lock.Kind) bool { return k.Waits }

// name returns a name that was not used before.
func (r *Run) name(scenario string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names++
	return fmt.Sprint(scenario, " ", r.names)
}

// values are metrics of one measurement.
type values map[string]float64

func (r *Run) add(scenario string, c contender, n int, v values) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for metric, value := range v {
		r.Result.Samples = append(r.Result.Samples, result.Sample{
			Scenario: scenario, Kind: c.ID(), N: n, Metric: metric, Value: value,
		})
	}
}

// failed records that something could not be measured. The run goes on.
func (r *Run) failed(scenario string, c contender, n int, err error) {
	if err == nil {
		return
	}
	log.Printf("%s, %s, %d: %v", scenario, c.ID(), n, err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Result.Samples = append(r.Result.Samples, result.Sample{
		Scenario: scenario, Kind: c.ID(), N: n, Metric: "error", Value: 1, Note: err.Error(),
	})
}

// pause waits, or fails when ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// pair acquires and releases a name.
func pair(ctx context.Context, c lock.Client, name string) error {
	release, err := c.Acquire(ctx, name)
	if err != nil {
		return err
	}
	return release(ctx)
}

// in calls f in n goroutines and waits for them.
func in(n int, f func(i int) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = f(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}
