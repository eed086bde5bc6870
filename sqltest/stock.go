package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"
)

const (
	// maxAhead bounds the databases of a template that are made ahead in one process.
	maxAhead = 4
	// maxEnded bounds those that wait to be dropped. They are memory, on a server of this run.
	maxEnded = 16
)

// stocks has the stocks of this process.
var stocks struct {
	mu  sync.Mutex
	all map[string]*stock // guarded by mu; the key is the server's DSN and the template's name
}

// stock has the databases of one template on one shared server. While tests use some of them, a goroutine makes the next
// ones ahead and drops those of tests that have ended. It ends with the last of these tests: until then, a test that looks
// for leaks has a database itself.
//
// On a server of this run, the databases that are left then are used by the next test, or end with the server. On a server
// named by a DSN, the last test drops them.
type stock struct {
	srv       server
	template  *Template
	blueprint blueprint

	mu      sync.Mutex // guards the fields below
	changed *sync.Cond // of users and working
	users   int        // databases in use
	peak    int        // the most that were in use at once
	asked   int        // databases that tests have asked for
	working bool       // the goroutine runs
	resets  int        // databases that are being reset
	failed  bool       // it has failed, and is not started again
	ready   []string   // made ahead
	ended   []string   // to be reset or dropped
	stuck   []string   // could not be dropped
}

// stockOf returns the stock of a template, which is made first if it is not there.
func (s server) stockOf(t *Template) (*stock, error) {
	b, err := s.blueprint(t)
	if err != nil {
		return nil, err
	}
	key := s.record.DSN + " " + b.name
	stocks.mu.Lock()
	defer stocks.mu.Unlock()
	found := stocks.all[key]
	if found == nil {
		if stocks.all == nil {
			stocks.all = make(map[string]*stock)
		}
		found = &stock{srv: s, template: t, blueprint: b}
		found.changed = sync.NewCond(&found.mu)
		stocks.all[key] = found
	}
	return found, nil
}

// take returns a database for a test. The test must give it back.
func (s *stock) take() (name string, err error) {
	s.mu.Lock()
	s.users++
	s.asked++
	s.peak = max(s.peak, s.users)
	s.changed.Broadcast()
	name, used := s.pick()
	s.work()
	s.mu.Unlock()
	if used && !s.reset(name, false) {
		name = ""
	}
	if name != "" {
		return name, nil
	}
	if name, err = s.make(); err != nil {
		return "", errors.Join(err, s.give(""))
	}
	return name, nil
}

// pick returns a database that is ready, or one that the caller must reset first, or none. It waits for one that is being
// reset, which is sooner than to make one. The caller holds mu.
func (s *stock) pick() (name string, used bool) {
	for {
		switch {
		case len(s.ready) > 0:
			return pop(&s.ready), false
		case !s.blueprint.resettable:
			return "", false
		case len(s.ended) > 0:
			s.resets++
			return pop(&s.ended), true
		case s.resets == 0:
			return "", false
		}
		s.changed.Wait()
	}
}

// pop takes the last of several names, which is the most likely to be in the server's caches.
func pop(names *[]string) string {
	last := len(*names) - 1
	name := (*names)[last]
	*names = (*names)[:last]
	return name
}

// give takes a database back, to be dropped; an empty name is one that is gone or kept. The caller that gives the last one
// waits until the goroutine has ended, and an error is about databases that it could not drop.
func (s *stock) give(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users--
	if name != "" {
		s.ended = append(s.ended, name)
	}
	if s.users > 0 {
		s.work()
		return nil
	}
	for s.working && s.users == 0 {
		s.changed.Wait()
	}
	if s.users > 0 || s.srv.inst != nil {
		return nil
	}
	left := slices.Concat(s.ready, s.ended, s.stuck)
	s.ready, s.ended, s.stuck = nil, nil, nil
	s.mu.Unlock()
	defer s.mu.Lock()
	var errs []error
	for _, name := range left {
		errs = append(errs, s.srv.dropNow(name))
	}
	return errors.Join(errs...)
}

// work starts the goroutine if there is something to do. The caller holds mu.
func (s *stock) work() {
	if s.working || s.failed || s.next() == nil {
		return
	}
	s.working = true
	go s.run()
}

func (s *stock) run() {
	// The administrator's connection stays open between two statements.
	_, done, err := s.srv.admin()
	if err == nil {
		defer done()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for err == nil {
		job := s.next()
		if job == nil {
			break
		}
		s.mu.Unlock()
		err = job()
		s.mu.Lock()
	}
	s.failed = err != nil // the tests will see why
	s.working = false
	s.changed.Broadcast()
}

// next returns what the goroutine should do, or nil. The caller holds mu.
func (s *stock) next() func() error {
	switch {
	case s.users == 0:
		return nil
	case len(s.ended) > maxEnded:
		return s.dropOne
	case len(s.ready) < s.target() && s.blueprint.resettable && len(s.ended) > 0:
		return s.resetOne
	case len(s.ready) < s.target():
		return s.makeOne
	case len(s.ended) > 0:
		return s.dropOne
	}
	return nil
}

// target returns how many databases should be ready: none for a first test, which may be the only one, and none where they
// would have to be dropped after each test. The caller holds mu.
func (s *stock) target() int {
	if s.asked < 2 || s.blueprint.inexact != "" || (s.srv.inst == nil && s.peak < 2) {
		return 0
	}
	return min(s.peak, maxAhead)
}

func (s *stock) makeOne() error {
	name, err := s.make()
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ready = append(s.ready, name)
	}
	return err
}

func (s *stock) resetOne() error {
	s.mu.Lock()
	if len(s.ended) == 0 { // a test was faster
		s.mu.Unlock()
		return nil
	}
	name := pop(&s.ended)
	s.resets++
	s.mu.Unlock()
	s.reset(name, true)
	return nil
}

// reset makes a database like new that is in none of the lists, or drops it and reports false. With ready, it is for any
// test. The caller has counted it in resets.
func (s *stock) reset(name string, ready bool) bool {
	like, gone := false, false
	_ = s.srv.administer(func(ctx context.Context, admin *sql.DB) (err error) {
		like, err = s.srv.product.copier().reset(ctx, admin, s.blueprint, name)
		like = like && err == nil
		gone = !like && s.srv.product.drop(ctx, admin, name) == nil
		return nil
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resets--
	if like && ready {
		s.ready = append(s.ready, name)
	}
	if !like && !gone {
		s.stuck = append(s.stuck, name)
	}
	s.changed.Broadcast()
	return like
}

func (s *stock) dropOne() error {
	s.mu.Lock()
	if len(s.ended) == 0 {
		s.mu.Unlock()
		return nil
	}
	name := pop(&s.ended)
	s.mu.Unlock()
	err := s.srv.dropNow(name)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stuck = append(s.stuck, name)
	}
	return err
}

func (s *stock) make() (name string, err error) { return s.srv.make(s.template, s.blueprint) }
