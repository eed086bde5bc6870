package sqltest

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// onSharedServer gives tb a database of a template, or an empty one, on the server that all tests of this run share.
func onSharedServer(tb TB, e Engine, t *Template, opts []Option) *Database {
	tb.Helper()
	p, ok := productOf(e)
	if !ok {
		tb.Fatalf("sqltest: %v", withoutError(e))
	}
	ctx, cancel := context.WithTimeout(context.Background(), pullTimeout+patiently)
	defer cancel()
	o := optionsOf(opts)
	if err := o.onSharedServer(); err != nil {
		tb.Fatalf("sqltest: %v", err)
	}
	srv, err := sharedServer(ctx, p, o.version)
	if err != nil {
		giveUp(tb, p, err)
	}
	from, err := srv.stockOf(t)
	if err != nil {
		tb.Fatalf("sqltest: a template on %s: %v", srv, redactError(p, srv.record.DSN, err))
	}
	if from.blueprint.inexact != "" {
		tb.Logf("sqltest: the migration runs for every test, because its result cannot be copied: %s", from.blueprint.inexact)
	}
	return newDatabase(tb, srv, from, o, func() bool { return true })
}

// sharedServer finds the server of this run that has a version, or starts it.
func sharedServer(ctx context.Context, p product, version string) (server, error) {
	sources, err := sourcesOf(p, version)
	if err != nil {
		return server{}, err
	}
	if sources[0].kind == fromDSN {
		srv, err := namedServer(ctx, p, sources[0].value)
		if err == nil {
			err = srv.check(version)
		}
		return srv, err
	}
	st, err := openState()
	if err != nil {
		return server{}, &noServerError{p, []attempt{{sources[0], err}}}
	}
	// While one process starts the server, the others wait here.
	unlock, err := lockFile(filepath.Join(st.root, string(p.engine())+".lock"))
	if err != nil {
		return server{}, err
	}
	defer unlock()
	for _, src := range sources {
		for _, inst := range st.instances(keyOf(p.engine(), src)) {
			if srv, ok := adopt(ctx, p, inst); ok {
				srv.source = src.kind
				return srv, srv.check(version)
			}
		}
	}
	return boot(ctx, p, sources, order{})
}

// namedServer connects to a running server that the environment names.
func namedServer(ctx context.Context, p product, dsn string) (server, error) {
	srv := server{product: p, source: fromDSN, record: record{DSN: dsn, Source: "the server named by " + p.variable()}}
	var err error
	if srv.version, err = srv.identify(ctx, unhurriedly); err != nil {
		public := source{kind: fromDSN, value: publicDSN(p, dsn)}
		return server{}, &noServerError{p, []attempt{{public, redactError(p, dsn, err)}}}
	}
	return srv, nil
}

// adopt registers this process with a running server. A server that refuses connections is dead, so adopt ends it, even
// if it has users. A server that does not answer is left to its users and to the reaper, because the machine may be
// busy.
func adopt(ctx context.Context, p product, inst *instance) (server, bool) {
	if !isSet("SQLTEST_KEEP") {
		_ = os.Remove(inst.file("users/keep"))
	}
	if _, found := silent.Load(inst.dir); found {
		return server{}, false
	}
	r, err := inst.adopt()
	if err != nil {
		return server{}, false // it is not ready, or it is ending
	}
	if !inst.isWatched() && inst.watch() != nil {
		return server{}, false
	}
	srv := server{product: p, record: r, inst: inst}
	ctx, cancel := context.WithTimeout(ctx, patiently)
	defer cancel()
	knock := sync.OnceValue(func() error { return r.knock(ctx) }) // a server may count those who connect and say nothing
	err = await(ctx, 100*time.Millisecond, func() (bool, error) {
		var err error
		if srv.version, err = srv.identify(ctx, quickly); err != nil {
			err = errors.Join(err, knock())
		}
		if wrong := (wrongProductError{}); errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &wrong) {
			return false, err // the server is dead, or another one has its port; any other error may be a busy moment
		}
		return err == nil, nil
	})
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		_ = inst.end()
	case err != nil:
		silent.Store(inst.dir, true)
	}
	return srv, err == nil
}

// knock connects to where the server is published, where nobody listens once it is gone. Its own address in Docker refuses
// nothing then, and another container may get it.
func (r record) knock(ctx context.Context) error {
	if r.Published == "" {
		return nil // another version of this package started it
	}
	ctx, cancel := context.WithTimeout(ctx, quickly)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", r.Published)
	if err != nil {
		return err
	}
	return conn.Close()
}

// silent has the folders of servers that did not answer this process in time. It does not wait for them again.
var silent sync.Map
