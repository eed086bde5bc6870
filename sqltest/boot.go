package sqltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// origin creates servers: a Docker daemon with an image, or installed programs.
type origin interface {
	String() string // "docker image postgres:17"
	host(ctx context.Context, inst *instance, password string, o order) (host, error)
}

// order says what kind of server is to be started.
type order struct {
	settings []string      // server options
	own      bool          // it belongs to one test
	tls      *certificates // nil without TLS
	primary  *primary      // what a standby follows; nil for other servers
}

// options returns the server options of p. The files for TLS are in a folder.
func (o order) options(p product, dir string) []string {
	settings := o.settings
	if o.tls != nil {
		settings = append(p.tls(dir), settings...)
	}
	return p.options(settings)
}

// host runs one server.
type host interface {
	start(ctx context.Context) error // also after stop or kill
	running(ctx context.Context) error
	address() string
	inside(ctx context.Context) (string, error) // the address that other servers of the same source see
	log() string                                // its last lines
	stop(ctx context.Context) error
	kill(ctx context.Context) error
	pause(ctx context.Context) error
	resume(ctx context.Context) error
	// preloadClock makes the server's next start use a library that reads its clock from a file, and setClock writes that file.
	preloadClock(ctx context.Context, library string, file []byte) error
	setClock(ctx context.Context, file []byte) error
}

// server is a server that answers.
type server struct {
	product product
	source  kind
	from    source
	record  record
	version string    // "PostgreSQL 17.6"
	inst    *instance // nil for a server that sqltest did not start
	host    host      // nil for a server that another process started
	own     bool      // it belongs to one test, which may stop it
}

func (s server) String() string { return s.version + " from " + s.record.Source }

// boot starts a new server from the first source that works. An own server belongs to one test; other servers are
// shared.
func boot(ctx context.Context, p product, sources []source, o order) (server, error) {
	st, err := openState()
	if err != nil {
		return server{}, &noServerError{p, []attempt{{sources[0], err}}}
	}
	if err := st.clean(); err != nil {
		return server{}, err
	}
	var tried []attempt
	for _, src := range sources {
		key := keyOf(p.engine(), src)
		err := st.recall(key)
		if err == nil {
			var srv server
			if srv, err = bootFrom(ctx, st, p, src, o); err == nil {
				return srv, nil
			}
			// A test's own server may have failed because of its settings.
			if !o.own {
				st.remember(key, err)
			}
		}
		tried = append(tried, attempt{src, err})
	}
	return server{}, &noServerError{p, tried}
}

func bootFrom(ctx context.Context, st state, p product, src source, o order) (server, error) {
	var from origin
	var err error
	if src.kind == fromDocker {
		from, err = findImage(ctx, st, p, src.value)
	} else {
		from, err = findPrograms(p, src.value, src.version)
	}
	if err != nil {
		return server{}, err
	}
	key := choose(o.own, "own-", "") + keyOf(p.engine(), src)
	for tries := 1; ; tries++ {
		srv, err := bootOn(ctx, st, p, from, src, key, o)
		// Another process may take the port between its choice and its use.
		if err == nil || tries == 3 || !portTaken(err) {
			return srv, err
		}
	}
}

func bootOn(ctx context.Context, st state, p product, from origin, src source, key string, o order) (_ server, err error) {
	inst, err := st.newInstance(key)
	if err != nil {
		return server{}, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, inst.end())
		}
	}()
	password := randomID()
	if o.primary != nil {
		password = o.primary.password
	}
	if o.tls != nil {
		if err := o.tls.save(inst); err != nil {
			return server{}, err
		}
	}
	h, err := from.host(ctx, inst, password, o)
	if err != nil {
		return server{}, err
	}
	if err := h.start(ctx); err != nil {
		return server{}, err
	}
	srv := server{product: p, source: src.kind, from: src, inst: inst, host: h, own: o.own}
	srv.record = record{DSN: p.private(h.address(), password), Published: h.address(), Source: from.String()}
	if o.tls != nil {
		if srv.record.DSN, err = p.secure(srv.record.DSN, inst, o.tls); err != nil {
			return server{}, err
		}
	}
	if srv, err = srv.await(ctx); err != nil {
		return server{}, err
	}
	if err := srv.check(src.version); err != nil {
		return server{}, err
	}
	if o.primary == nil { // a standby has the password of its primary
		if err := srv.ease(ctx, password); err != nil {
			return server{}, err
		}
	}
	return srv, inst.publish(srv.record)
}

func (s server) ease(ctx context.Context, password string) error {
	db, err := s.product.open(s.record.DSN)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	return s.product.ease(ctx, db, password)
}

// nearby returns the server at the own address of its container if this machine seems to be in its network, as on Linux: a
// published port has a proxy that copies each packet. A server that may be started again, at another address, has none.
func (s server) nearby(ctx context.Context) (near server, ok bool) {
	if s.own || s.source != fromDocker {
		return s, false
	}
	address, err := s.host.inside(ctx)
	if err != nil {
		return s, false
	}
	if s.record.DSN, err = s.product.at(s.record.DSN, address); err != nil {
		return s, false
	}
	s.record.Published = address // unless it answers where its port is published
	ip, _, _ := net.SplitHostPort(address)
	networks, _ := net.InterfaceAddrs()
	return s, slices.ContainsFunc(networks, func(network net.Addr) bool {
		n, ok := network.(*net.IPNet)
		return ok && n.Contains(net.ParseIP(ip))
	})
}

// await waits until a started server answers or ends. It returns the server with its version, at the address to use.
func (s server) await(ctx context.Context) (server, error) {
	ctx, cancel := context.WithTimeout(ctx, patiently)
	defer cancel()
	near, isNear := s.nearby(ctx)
	s.version, near.version = "", ""
	var last error
	err := await(ctx, 100*time.Millisecond, func() (bool, error) {
		if err := s.host.running(ctx); err != nil {
			return false, err
		}
		s.version, last = s.identify(ctx, quickly)
		if wrong := (wrongProductError{}); errors.As(last, &wrong) {
			return false, last
		}
		if last != nil && isNear {
			near.version, _ = near.identify(ctx, time.Second) // it has the password, so it is this server
		}
		return last == nil || near.version != "", nil
	})
	if err != nil {
		todo := ""
		if s.source == fromDocker && errors.Is(err, context.DeadlineExceeded) {
			todo = "\nits port is published at " + s.record.Published + "; if the machine with Docker has another name here, " +
				"as in a container, set " + hostOverride + " to that name"
		}
		return server{}, fmt.Errorf("%s does not answer: %w%s\n%s", s.record.Source, errors.Join(err, last), todo, s.host.log())
	}
	if last == nil && isNear {
		near.version, _ = near.identify(ctx, quickly)
	} else if last != nil {
		_, last = s.identify(ctx, quickly) // it may answer there by now
	}
	if near.version == "" {
		return s, nil
	}
	if last == nil {
		near.record.Published = s.record.Published
	}
	return near, nil
}

func portTaken(err error) bool {
	text := strings.ToLower(err.Error())
	return strings.Contains(text, "address already in use") || strings.Contains(text, "port is already allocated")
}

// freePort returns a port of the loopback interface without a listener.
func freePort(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return port, errors.Join(err, listener.Close())
}

// installed are programs found on this machine.
type installed struct {
	product  product
	programs programs
}

func findPrograms(p product, dir, version string) (origin, error) {
	found, err := p.find(dir, version)
	if err != nil {
		return nil, err
	}
	return installed{p, found}, nil
}

func (i installed) String() string { return "programs in " + i.programs.dir }

func (i installed) host(ctx context.Context, inst *instance, password string, o order) (host, error) {
	return newProcess(ctx, i.product, i.programs, inst, password, o)
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && (filepath.Ext(path) == ".exe" || info.Mode().Perm()&0o111 != 0)
}

func lastLines(text []byte, n int) string {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return "its last lines of " + strconv.Itoa(len(lines)) + ":\n" + string(bytes.Join(lines[max(0, len(lines)-n):], []byte("\n")))
}
