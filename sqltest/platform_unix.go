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

// checkOwner refuses a folder that another user could have put there.
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

// lockFile locks a file exclusively, and waits for it if needed.
func lockFile(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // a path chosen by sqltest
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

// runPID returns the process that represents this test run: the go command if it has started this process, otherwise
// this process.
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

// ps runs the command ps, for systems without /proc. It ignores the caller's context: it is quick, and its result is
// needed even if that context has ended.
//
//nolint:contextcheck,nolintlint // see above; nolintlint does not know that it is used
func ps(args ...string) []byte {
	ctx, cancel := context.WithTimeout(context.Background(), quickly)
	defer cancel()
	out, _ := exec.CommandContext(ctx, "ps", args...).Output()
	return out
}

// detach starts a command in a session of its own, which the terminal's signals to the tests do not reach.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
}

// account is the user that server programs run as.
type account struct{ uid, gid int }

// accountFor returns the user to run a server as, or nil for the user of this process. PostgreSQL refuses to run as
// root, for good reasons that hold for the other servers too.
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

// reaches returns an error if this user cannot reach path.
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
