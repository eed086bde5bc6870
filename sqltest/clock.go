package sqltest

import (
	"archive/tar"
	"bytes"
	"context"
	"database/sql"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	dc "github.com/ory/dockertest/v3/docker"
)

//go:embed clock/clock.c
var clockSource []byte

//go:embed clock/preload.sh
var clockScript string

// StepClock moves the server's wall clock ahead, or back if the time is negative, by whole seconds. It returns when the server
// uses the new time. Its monotonic clock goes on, and so do the clocks of this process and of other servers.
//
// The first call restarts the server, with a small library of C in front of its clock. That needs Linux, a C compiler on this
// machine, and in a container a system with glibc, such as Debian; otherwise StepClock ends the test with Fatalf.
func (s *Server) StepClock(by time.Duration) {
	s.tb.Helper()
	s.move("step the clock of", isRunningPhase, func(ctx context.Context) error { return s.stepClock(ctx, by) }, isRunningPhase)
}

// stepClock does the work of StepClock. The caller holds mu.
func (s *Server) stepClock(ctx context.Context, by time.Duration) error {
	if !s.clock {
		if err := s.preloadClock(ctx); err != nil {
			return err
		}
		s.clock = true
	}
	ahead := s.ahead + by.Truncate(time.Second)
	if err := s.srv.host.setClock(ctx, clockFile(ahead)); err != nil {
		return err
	}
	s.ahead = ahead
	db, err := s.srv.product.open(s.srv.record.DSN)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	return await(ctx, 5*time.Millisecond, func() (bool, error) {
		now, err := s.srv.product.now(ctx, db)
		off := time.Until(now) - ahead
		return off.Abs() < time.Minute, err
	})
}

// preloadClock restarts the server with the library.
func (s *Server) preloadClock(ctx context.Context) error {
	library := s.srv.inst.file("clock.so")
	if err := compileClock(ctx, s.srv.inst, library); err != nil {
		return err
	}
	if err := s.srv.host.preloadClock(ctx, library, clockFile(0)); err != nil {
		return err
	}
	if err := errors.Join(s.srv.host.stop(ctx), s.srv.host.start(ctx)); err != nil {
		return err
	}
	_, err := s.srv.await(ctx)
	return err
}

func compileClock(ctx context.Context, inst *instance, library string) error {
	if runtime.GOOS != "linux" {
		return errors.New("the clock of a server can be set on Linux only")
	}
	compiler, err := exec.LookPath("cc")
	if err != nil {
		compiler, err = exec.LookPath("gcc")
	}
	if err != nil {
		return errors.New("to set the clock of a server, install a C compiler: neither cc nor gcc is on the PATH")
	}
	if err := inst.write("clock.c", string(clockSource)); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, compiler, "-shared", "-fPIC", "-O2", "-o", library, inst.file("clock.c")).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", compiler, err, out)
	}
	return nil
}

// clockFile returns the content of the file that the library reads.
func clockFile(ahead time.Duration) []byte {
	return binary.LittleEndian.AppendUint64(nil, uint64(int64(ahead.Seconds())<<8|1))
}

const (
	clockLibrary = "/usr/local/lib/sqltest-clock.so"
	clockKept    = "/var/tmp/sqltest-clock" // what the clock says after the next start
	clockMapped  = "/dev/shm/sqltest-clock" // what it says now
)

// preloadClock replaces the server's program in its container with a script that sets the environment.
func (c *container) preloadClock(ctx context.Context, library string, content []byte) error {
	var files bytes.Buffer
	archive := tar.NewWriter(&files)
	code, err := os.ReadFile(library) //nolint:gosec // which was just built
	for name, content := range map[string][]byte{clockLibrary: code, clockKept: content} {
		err = errors.Join(err, archive.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}))
		_, errWrite := archive.Write(content)
		err = errors.Join(err, errWrite)
	}
	if err = errors.Join(err, archive.Close()); err != nil {
		return err
	}
	err = c.client().UploadToContainer(c.run.Name, dc.UploadToContainerOptions{InputStream: &files, Path: "/", Context: ctx})
	if err != nil {
		return err
	}
	return c.exec(ctx, strings.NewReader(clockScript), "sh", "-es", clockKept, clockMapped, "LD_PRELOAD="+clockLibrary, "CLOCK_FILE="+clockMapped)
}

// setClock writes in place: the file is mapped.
func (c *container) setClock(ctx context.Context, content []byte) error {
	const write = `cat >"$0" && dd if="$0" of="$1" bs=8 count=1 conv=notrunc,nocreat 2>/dev/null`
	return c.exec(ctx, bytes.NewReader(content), "sh", "-c", write, clockKept, clockMapped)
}

// exec runs a command as root in the container.
func (c *container) exec(ctx context.Context, input io.Reader, command ...string) error {
	e, err := c.client().CreateExec(dc.CreateExecOptions{
		Container: c.run.Name, User: "0", Cmd: command, AttachStdin: true, AttachStdout: true, AttachStderr: true, Context: ctx,
	})
	if err != nil {
		return err
	}
	var out bytes.Buffer
	err = c.client().StartExec(e.ID, dc.StartExecOptions{InputStream: input, OutputStream: &out, ErrorStream: &out, Context: ctx})
	if err != nil {
		return err
	}
	done, err := c.client().InspectExec(e.ID)
	if err == nil && done.ExitCode != 0 {
		err = fmt.Errorf("%s in the container: exit status %d: %s", command[0], done.ExitCode, &out)
	}
	return err
}

func nowBy(ctx context.Context, db *sql.DB, query string) (time.Time, error) {
	var us int64
	err := db.QueryRowContext(ctx, query).Scan(&us)
	return time.UnixMicro(us), err
}
