//go:build unix

package sqltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a server that runs as a program on this machine.
type process struct {
	product  product
	programs programs
	inst     *instance
	account  *account
	port     string
	order    order
	env      []string  // besides that of this process
	cmd      *exec.Cmd // the server; nil before the first start
}

// launch is a shell script that records its process id and then becomes the program, so every running server is on
// record. It does not start if the instance is being ended: the reaper removes the record of the instance before it
// reads the process id.
const launch = `echo $$ >&3 && exec 3>&- && [ ! -e "$0/server.ended" ] && exec "$@"`

// newProcess creates a data folder for the programs of p.
func newProcess(ctx context.Context, p product, progs programs, inst *instance, password string, o order) (host, error) {
	acc, err := accountFor(p.user())
	if err != nil {
		return nil, err
	}
	s := &process{product: p, programs: progs, inst: inst, account: acc, order: o}
	if err := acc.reaches(inst.dir); err != nil {
		return nil, err
	}
	if err := inst.write("signal", p.endSignal()); err != nil {
		return nil, err
	}
	f := s.folder()
	if err := inst.write("secret", p.secret(password)); err != nil {
		return nil, err
	}
	for _, dir := range []string{f.data, f.temp} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
	}
	owned := []string{f.secret, f.data, f.temp}
	if o.tls != nil {
		owned = append(owned, inst.file(caFile), inst.file(certFile), inst.file(keyFile))
	}
	var errs []error
	for _, path := range owned {
		errs = append(errs, acc.own(path))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	args := p.initialize(progs, f)
	if o.primary != nil {
		s.env = []string{"PGPASSWORD=" + o.primary.password}
		args = s.copyOf(o.primary)
	}
	cmd, err := s.launch(args)
	s.env = nil
	if err != nil {
		return nil, err
	}
	if err := awaitExit(ctx, cmd); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", args[0], err, s.log())
	}
	return s, nil
}

func (s *process) folder() folder {
	return folder{data: s.inst.file("data"), temp: s.inst.file("temp"), secret: s.inst.file("secret")}
}

// start starts the server, the first time on a free port and later on the same port.
func (s *process) start(ctx context.Context) error {
	if s.port == "" {
		port, err := freePort(ctx)
		if err != nil {
			return err
		}
		s.port = port
	}
	args := append(s.product.serve(s.programs, s.folder(), s.port), s.order.options(s.product, s.inst.dir)...)
	cmd, err := s.launch(args)
	s.cmd = cmd
	return err
}

func (s *process) address() string { return "127.0.0.1:" + s.port }

func (s *process) launch(args []string) (*exec.Cmd, error) {
	log, err := os.OpenFile(s.inst.file("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	pid, err := os.OpenFile(s.inst.file("pid"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = pid.Close() }()

	cmd := exec.Command("/bin/sh", append([]string{"-c", launch, s.inst.dir}, args...)...) //nolint:noctx // it outlives every context
	cmd.Dir = "/"
	cmd.Env = slices.Concat(os.Environ(), []string{"LC_ALL=C", "TZ=UTC", "TMPDIR=" + s.inst.file("temp")}, s.env)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{pid}
	detach(cmd)
	s.account.run(cmd)
	return cmd, cmd.Start()
}

// running returns an error if the server has ended.
func (s *process) running(context.Context) error {
	ended, err := exited(s.cmd)
	switch {
	case !ended:
		return nil
	case err == nil:
		err = errors.New("exit status 0")
	}
	return fmt.Errorf("the server has ended: %w", err)
}

func (s *process) log() string {
	content, _ := os.ReadFile(s.inst.file("log"))
	return lastLines(content, 50)
}

func (s *process) stop(ctx context.Context) error {
	signal := syscall.SIGTERM
	if s.product.stopSignal() == "INT" {
		signal = syscall.SIGINT
	}
	if err := s.signal(signal, s.cmd.Process.Pid); err != nil {
		return err
	}
	_ = awaitExit(ctx, s.cmd) // the exit status does not matter
	return ctx.Err()
}

// kill ends every process of the server. Each child of PostgreSQL has a session of its own, so no process group
// contains all of them.
func (s *process) kill(ctx context.Context) error {
	if err := s.pause(ctx); err != nil {
		return err
	}
	all := append(s.children(), s.cmd.Process.Pid)
	for _, pid := range all {
		if err := s.signal(syscall.SIGKILL, pid); err != nil {
			return err
		}
	}
	return await(ctx, 5*time.Millisecond, func() (bool, error) {
		// Until it is collected, its process id looks alive to the next server.
		collected, _ := exited(s.cmd)
		return collected && !slices.ContainsFunc(all, isAlive), nil
	})
}

// pause stops the parent first, so that it cannot start more children.
func (s *process) pause(ctx context.Context) error {
	if err := s.freeze(ctx, s.cmd.Process.Pid); err != nil {
		return err
	}
	return s.freeze(ctx, s.children()...)
}

// freeze stops the processes, and returns when none of them runs any more.
func (s *process) freeze(ctx context.Context, pids ...int) error {
	for _, pid := range pids {
		if err := s.signal(syscall.SIGSTOP, pid); err != nil {
			return err
		}
	}
	return await(ctx, 5*time.Millisecond, func() (bool, error) {
		return !slices.ContainsFunc(pids, func(pid int) bool { return isAlive(pid) && stateOf(pid) != "T" }), nil
	})
}

func (s *process) resume(context.Context) error {
	for _, pid := range append(s.children(), s.cmd.Process.Pid) {
		if err := s.signal(syscall.SIGCONT, pid); err != nil {
			return err
		}
	}
	return nil
}

func (s *process) signal(signal syscall.Signal, pid int) error {
	err := syscall.Kill(pid, signal)
	if errors.Is(err, syscall.ESRCH) {
		return nil // it has ended already
	}
	return err
}

func (s *process) children() []int {
	parent := s.cmd.Process.Pid
	var pids []int
	if list, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", parent)); err == nil {
		for field := range strings.FieldsSeq(string(list)) {
			pid, _ := strconv.Atoi(field)
			pids = append(pids, pid)
		}
		return pids
	}
	for line := range bytes.Lines(ps("-A", "-o", "pid=", "-o", "ppid=")) {
		var pid, ppid int
		if n, _ := fmt.Sscan(string(line), &pid, &ppid); n == 2 && ppid == parent {
			pids = append(pids, pid)
		}
	}
	return pids
}

// isAlive reports whether a process still holds anything, including memory shared with others. (A process loses its
// arguments before it releases that.)
func isAlive(pid int) bool {
	state := stateOf(pid)
	return state != "" && state != "Z"
}

// stateOf returns the letter with which ps shows the state of a process: T for stopped, Z for dead but not yet
// collected. It is empty if the process is gone.
func stateOf(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil && !isDir("/proc/self") {
		return fmt.Sprintf("%.1s", bytes.TrimSpace(ps("-o", "state=", "-p", strconv.Itoa(pid))))
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return fmt.Sprintf("%.1s", state)
}

// argsOf returns the command line of a process. It is empty if the process is gone or dead.
func argsOf(pid int) string {
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil && !isDir("/proc/self") {
		args = ps("-o", "args=", "-p", strconv.Itoa(pid))
	}
	return string(args)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// exited collects a child of this process if it has ended. Wait would need a goroutine that outlives the test.
func exited(cmd *exec.Cmd) (bool, error) {
	var status syscall.WaitStatus
	for {
		pid, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.ECHILD):
			return true, errors.New("exit status unknown")
		case err != nil:
			return true, err
		case pid == 0:
			return false, nil
		case status.Signaled():
			return true, fmt.Errorf("signal: %v", status.Signal())
		case status.ExitStatus() != 0:
			return true, fmt.Errorf("exit status %d", status.ExitStatus())
		}
		return true, nil
	}
}

// awaitExit waits for the end of a command, and kills it if ctx ends first.
func awaitExit(ctx context.Context, cmd *exec.Cmd) error {
	var outcome error
	err := await(ctx, 5*time.Millisecond, func() (ended bool, _ error) {
		ended, outcome = exited(cmd)
		return ended, nil
	})
	if err != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		return err
	}
	return outcome
}
