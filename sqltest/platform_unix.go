//go:build unix

package sqltest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const supported = true

var errUnsupported error

// checkOwner refuses a folder that somebody else has put there.
func checkOwner(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(stat.Uid) != os.Getuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s must be a folder that belongs to this user and that nobody else can write to", dir)
	}
	return nil
}

// lockFile waits until this process alone has the lock.
func lockFile(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // a path of our own
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { _ = file.Close() }, nil
}

// runPID is the process that stands for this test run: the go command, if it
// has started this process, or else this process.
func runPID() int {
	parent := os.Getppid()
	comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", parent))
	if err != nil {
		comm = ps("-o", "comm=", "-p", strconv.Itoa(parent))
	}
	if filepath.Base(strings.TrimSpace(string(comm))) == "go" {
		return parent
	}
	return os.Getpid()
}

// ps runs the command of that name, for systems without /proc. It is quick, and
// what it finds is needed even if the caller's context has ended.
//
//nolint:contextcheck,nolintlint // see above; nolintlint does not know that it is used
func ps(args ...string) []byte {
	ctx, cancel := context.WithTimeout(context.Background(), quickly)
	defer cancel()
	out, _ := exec.CommandContext(ctx, "ps", args...).Output()
	return out
}

// detach puts a command in a session of its own: what a terminal sends to the
// tests does not reach it.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
}

// account is the user that server programs run as.
type account struct{ uid, gid int }

// accountFor returns whom to run a server as, or nil for this process's user.
// PostgreSQL refuses to run as root, for good reasons that hold for others too.
func accountFor(name string) (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // documented
	}
	u, err := user.Lookup(name)
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		return nil, fmt.Errorf("root needs another user to run the server: %w", err)
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	return &account{uid, gid}, errors.Join(err1, err2)
}

func (a *account) run(cmd *exec.Cmd) {
	if a != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
}

func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	return os.Chown(path, a.uid, a.gid)
}

// reaches returns an error that says why this user cannot get to path.
func (a *account) reaches(path string) error {
	if a == nil {
		return nil
	}
	for dir := path; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o001 == 0 {
			return fmt.Errorf("the server does not run as root, and others cannot enter %s (mode %v): set TMPDIR to another folder", dir, info.Mode().Perm())
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}
