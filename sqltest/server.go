package sqltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Server is a database server of one test, which may stop, kill and pause it. Its methods end the test with Fatalf if
// they fail, so they must be called from the test's own goroutine. Each returns only after the operation has completed.
type Server struct {
	tb    TB
	srv   server
	order order

	mu    sync.Mutex // guards the fields below
	phase phase
	clock bool          // the server runs with a clock that can be set
	ahead time.Duration // of the machine's clock
}

type phase string

const (
	isRunningPhase phase = "running"
	isPausedPhase  phase = "paused"
	isStoppedPhase phase = "stopped"
)

// Start starts a server for tb alone, from the same source as the shared one (if that is a DSN: from Docker or from
// programs, and if neither works the test is skipped). Options are [Version], [TLS] and [Setting], such as Setting("max_connections",
// "20"), which overrides one of this package. The server and its data are removed when tb ends.
func Start(tb TB, e Engine, opts ...Option) *Server {
	tb.Helper()
	p, ok := productOf(e)
	if e == EngineSQLite {
		tb.Fatalf("sqltest: %s is not a server to be started", e)
	} else if !ok {
		tb.Fatalf("sqltest: %v", withoutError(e))
	}
	o := optionsOf(opts)
	if err := o.ofServer(); err != nil {
		tb.Fatalf("sqltest: %v", err)
	}
	sources, errSources := ownSourcesOf(p, o.version)
	if errSources != nil && !errors.Is(errSources, errNoDSN) {
		giveUp(tb, p, errSources)
	}
	ctx, cancel := context.WithTimeout(context.Background(), pullTimeout+patiently)
	defer cancel()
	want := order{settings: o.serverSettings(), own: true}
	if o.tls {
		var err error
		if want.tls, err = newCertificates(dockerEndpoint(ctx)); err != nil {
			tb.Fatalf("sqltest: certificates: %v", err)
		}
	}
	srv, err := boot(ctx, p, sources, want)
	switch {
	case err != nil && errSources != nil:
		tb.Skipf("sqltest: %v; and %v", errSources, err)
	case err != nil:
		giveUp(tb, p, err)
	}
	return newServer(tb, srv, want)
}

// newServer makes a server end with tb.
func newServer(tb TB, srv server, o order) *Server {
	tb.Helper()
	s := &Server{tb: tb, srv: srv, order: o, phase: isRunningPhase}
	tb.Cleanup(func() {
		tb.Helper()
		if keep(tb) {
			srv.keep(tb, srv.record.DSN)
			return
		}
		if o.primary == nil {
			srv.product.insecure(srv.inst)
		}
		var err error
		if c, ok := srv.host.(*container); ok { // without a docker command nobody else removes it
			ctx, cancel := context.WithTimeout(context.Background(), unhurriedly)
			defer cancel()
			err = c.image.remove(ctx, c.run.Name)
		}
		if err := errors.Join(err, srv.inst.end()); err != nil {
			tb.Logf("sqltest: end %s: %v", srv, err)
		}
	})
	return s
}

// String returns the version and the source of the server, such as "PostgreSQL 17.6 from docker image postgres:17".
func (s *Server) String() string { return s.srv.String() }

// Database gives tb a new, empty database on this server. tb is the test that the server belongs to, or a subtest of
// it. Options are [Setting] and [Extension].
func (s *Server) Database(tb TB, opts ...Option) *Database {
	tb.Helper()
	return s.database(tb, nil, opts)
}

func (s *Server) database(tb TB, t *Template, opts []Option) *Database {
	tb.Helper()
	o := optionsOf(opts)
	if err := o.ofDatabase(); err != nil {
		tb.Fatalf("sqltest: %v", err)
	}
	running := func() bool { return s.is(isRunningPhase) }
	return newDatabase(tb, s.srv, inline{s.srv, t, running}, o, running)
}

// Stop shuts the server down cleanly, without waiting for clients to leave.
func (s *Server) Stop() {
	s.tb.Helper()
	s.move("stop", isStoppedPhase, s.srv.host.stop, isRunningPhase)
}

// Kill ends all processes of the server with SIGKILL.
func (s *Server) Kill() {
	s.tb.Helper()
	s.move("kill", isStoppedPhase, s.srv.host.kill, isRunningPhase, isPausedPhase)
}

// Pause stops all processes of the server in place: connections stay open, and no request is answered.
func (s *Server) Pause() {
	s.tb.Helper()
	s.move("pause", isPausedPhase, s.srv.host.pause, isRunningPhase)
}

// Resume continues a paused server.
func (s *Server) Resume() {
	s.tb.Helper()
	s.move("resume", isRunningPhase, s.srv.host.resume, isPausedPhase)
}

// Start starts the server again after Stop or Kill, with the same address and the same data.
func (s *Server) Start() {
	s.tb.Helper()
	s.move("start", isRunningPhase, func(ctx context.Context) error {
		if err := s.srv.host.start(ctx); err != nil {
			return err
		}
		_, err := s.srv.await(ctx)
		return err
	}, isStoppedPhase)
}

func (s *Server) is(p phase) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phase == p
}

// move runs an operation that takes the server from one of the phases to another.
func (s *Server) move(what string, to phase, do func(context.Context) error, from ...phase) {
	s.tb.Helper()
	if err := s.try(to, do, from); err != nil {
		s.tb.Fatalf("sqltest: %s %s: %v", what, s, err)
	}
}

func (s *Server) try(to phase, do func(context.Context) error, from []phase) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(from, s.phase) {
		return fmt.Errorf("it is %s", s.phase)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patiently)
	defer cancel()
	if err := do(ctx); err != nil {
		return err
	}
	s.phase = to
	return nil
}
