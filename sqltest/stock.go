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
	// maxWorkers bounds the goroutines that reset databases. One keeps up with tests that take longer than a reset.
	maxWorkers = 2
)

// stocks has the stocks of this process.
var stocks struct {
	mu  sync.Mutex
	all map[string]*stock // guarded by mu; the key is the server's DSN and the template's name
}

// stock has the databases of one template on one shared server. While tests use some of them, goroutines make the next
// ones ahead and drop those of tests that have ended. They end with the last of these tests: until then, a test that looks
// for leaks has a database itself.
//
// On a server of this run, the databases that are left then are used by the next test, or end with the server. On a server
// named by a DSN, the last test drops them.
type stock struct {
	srv       server
	template  *Template
	blueprint blueprint

	mu      sync.Mutex // guards the fields below
	changed *sync.Cond // of users, workers and coming
	users   int        // databases in use
	peak    int        // the most that were in use at once
	asked   int        // databases that tests have asked for
	workers int        // goroutines that run
	coming  int        // databases that they will have ready soon
	waiting int        // tests that wait for one of those
	failed  bool       // a goroutine has failed, and none is started again
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
	if used && !s.reset(name) {
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

// pick returns a database that is ready, or one that the caller must reset first, or none. It waits for one that a
// goroutine is resetting, which is sooner than another one. The caller holds mu.
func (s *stock) pick() (name string, used bool) {
	for {
		switch {
		case len(s.ready) > 0:
			return pop(&s.ready), false
		case !s.blueprint.resettable:
			return "", false
		case s.waiting >= s.coming && len(s.ended) > 0:
			return pop(&s.ended), true
		case s.coming == 0:
			return "", false
		}
		s.waiting++
		s.changed.Wait()
		s.waiting--
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
// waits until the goroutines have ended, and an error is about databases that it could not drop.
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
	for s.workers > 0 && s.users == 0 {
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

// work starts goroutines if there is something to do. The caller holds mu.
func (s *stock) work() {
	for !s.failed && (s.workers == 0 || s.blueprint.resettable && s.workers < maxWorkers) {
		job := s.next()
		if job == nil {
			return
		}
		s.workers++
		go s.run(job)
	}
}

func (s *stock) run(job func() error) {
	// The administrator's connection stays open between two statements.
	_, done, err := s.srv.admin()
	if err == nil {
		defer done()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for job != nil {
		s.mu.Unlock()
		err = errors.Join(err, job())
		s.mu.Lock()
		if job = nil; err == nil {
			job = s.next()
		}
	}
	s.failed = s.failed || err != nil // the tests will see why
	s.workers--
	s.changed.Broadcast()
}

// next returns what a goroutine should do next, or nil. The caller holds mu.
func (s *stock) next() func() error {
	short := len(s.ready)+s.coming < s.target()
	switch {
	case s.users == 0:
		return nil
	case len(s.ended) > maxEnded || len(s.ended) > 0 && !s.blueprint.resettable && !short:
		name := pop(&s.ended)
		return func() error { return s.drop(name) }
	case short && s.blueprint.resettable && len(s.ended) > 0:
		s.coming++
		name := pop(&s.ended)
		return func() error { return s.came(choose(s.reset(name), name, ""), nil) }
	case short:
		s.coming++
		return func() error { return s.came(s.make()) }
	}
	return nil
}

// came notes a database that a goroutine has made or reset. An empty name is one that could not be had.
func (s *stock) came(name string, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.coming--
	if name != "" {
		s.ready = append(s.ready, name)
	}
	s.changed.Broadcast()
	return err
}

// target returns how many databases should be ready: none for a first test, which may be the only one, and none where they
// would have to be dropped after each test. A test can end sooner than a reset, so there is one more where they are reset.
// The caller holds mu.
func (s *stock) target() int {
	if s.asked < 2 || s.blueprint.inexact != "" || (s.srv.inst == nil && s.peak < 2) {
		return 0
	}
	return min(s.peak+choose(s.blueprint.resettable, 1, 0), maxAhead)
}

// reset makes a used database like new, or drops it and reports false.
func (s *stock) reset(name string) (like bool) {
	gone := false
	_ = s.srv.administer(func(ctx context.Context, admin *sql.DB) (err error) {
		like, err = s.srv.product.copier().reset(ctx, admin, s.blueprint, name)
		like = like && err == nil
		gone = !like && s.srv.product.drop(ctx, admin, name) == nil
		return nil
	})
	if !like && !gone {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stuck = append(s.stuck, name)
	}
	return like
}

func (s *stock) drop(name string) error {
	err := s.srv.dropNow(name)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stuck = append(s.stuck, name)
	}
	return err
}

func (s *stock) make() (name string, err error) { return s.srv.make(s.template, s.blueprint) }
