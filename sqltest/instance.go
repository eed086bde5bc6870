package sqltest

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// instance is the folder of one server:
//
//	users/<pid>    a process that needs the server; "keep" while it is kept for inspection
//	container      the container's name, written before it is created
//	pid, signal    the program's process, written before it becomes the server,
//	               and the signal that ends it
//	server.json    written when the server answers; gone when its end has begun
//	server.ended   server.json, then
//	reaper.sh      the script that ends the server when it has no users
//	reaper         its process
//	data/, temp/   of a program
//	secret, log    of a program, too
type instance struct{ dir string }

// record is what other test processes must know about a server.
type record struct {
	DSN       string `json:"dsn"`       // the administrator's
	Published string `json:"published"` // host:port; of a container not that in DSN
	Source    string `json:"source"`    // "docker image postgres:17"
}

//go:embed reaper.sh
var reaperScript []byte

// newInstance creates the folder of a new server, registers this process as a user, and starts the reaper.
func (s state) newInstance(key string) (*instance, error) {
	unlock, err := lockFile(filepath.Join(s.root, "all.lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()

	inst := &instance{dir: filepath.Join(s.root, key+"-"+randomID())}
	if err := os.Mkdir(inst.dir, folderMode()); err != nil {
		return nil, err
	}
	if err := os.Mkdir(inst.file("users"), 0o700); err != nil {
		return nil, err
	}
	if err := inst.register(); err != nil {
		return nil, err
	}
	return inst, inst.watch()
}

func (i *instance) file(name string) string { return filepath.Join(i.dir, name) }

func (i *instance) write(name, content string) error {
	return os.WriteFile(i.file(name), []byte(content), 0o600)
}

// register records that this process needs the server, and that the run it belongs to needs it: with `go test -p 1` the
// server must stay up between two packages.
func (i *instance) register() error {
	for _, pid := range []int{os.Getpid(), runPID()} {
		if err := i.write(filepath.Join("users", strconv.Itoa(pid)), ""); err != nil {
			return err
		}
	}
	return nil
}

// keep keeps the server running after this run.
func (i *instance) keep() error { return i.write("users/keep", "") }

// adopt registers this process and returns the record of the server, unless there is none (not yet, or no longer). The
// reaper removes the record before it checks the users for the last time. So if a process has registered and then still
// reads the record, the reaper's last check sees that process.
func (i *instance) adopt() (record, error) {
	if err := i.register(); err != nil {
		return record{}, err
	}
	content, err := os.ReadFile(i.file("server.json"))
	if err != nil {
		return record{}, err
	}
	var r record
	return r, json.Unmarshal(content, &r)
}

// publish makes the server known to other test processes.
func (i *instance) publish(r record) error {
	content, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := i.write("server.new", string(content)); err != nil {
		return err
	}
	return os.Rename(i.file("server.new"), i.file("server.json"))
}

// watch starts the reaper, which outlives this process.
func (i *instance) watch() error {
	if err := os.WriteFile(i.file("reaper.sh"), reaperScript, 0o600); err != nil {
		return err
	}
	reaper := i.reaper("watch")
	detach(reaper)
	if err := reaper.Start(); err != nil {
		return fmt.Errorf("start the reaper: %w", err)
	}
	return errors.Join(
		i.write("reaper", strconv.Itoa(reaper.Process.Pid)),
		reaper.Process.Release(),
	)
}

// isWatched reports whether the reaper is running.
func (i *instance) isWatched() bool {
	content, _ := os.ReadFile(i.file("reaper"))
	pid, err := strconv.Atoi(string(content))
	return err == nil && strings.Contains(argsOf(pid), i.file("reaper.sh"))
}

// end ends the server and removes the folder, even if the server has users.
func (i *instance) end() error { return i.reap("now") }

// endIfUnused does the same if no user is left.
func (i *instance) endIfUnused() error { return i.reap("once") }

// reap ends the server with a reaper. It ignores the caller's context, so that it does not stop half-way.
//
//nolint:contextcheck,nolintlint // see above; nolintlint does not know that it is used
func (i *instance) reap(mode string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	// An incomplete folder may have no script.
	if err := os.WriteFile(i.file("reaper.sh"), reaperScript, 0o600); os.IsNotExist(err) {
		return nil
	}
	reaper := i.reaper(mode)
	detach(reaper)
	if err := reaper.Start(); err != nil {
		return err
	}
	err := awaitExit(ctx, reaper)
	if _, gone := os.Stat(i.dir); os.IsNotExist(gone) { // another reaper was faster
		return nil
	}
	return err
}

// reaper returns the command of the reaper. It shares no open file with this process: `go test` waits for every process
// that has inherited the test's output.
func (i *instance) reaper(mode string) *exec.Cmd {
	cmd := exec.Command("/bin/sh", i.file("reaper.sh"), i.dir, mode) //nolint:noctx // it outlives every context
	cmd.Dir = "/"
	return cmd
}

// clean removes what earlier runs have left: servers without users, and kept servers unless SQLTEST_KEEP is still set.
func (s state) clean() error {
	unlock, err := lockFile(filepath.Join(s.root, "all.lock"))
	if err != nil {
		return err
	}
	defer unlock()
	for _, inst := range s.instances("") {
		if !isSet("SQLTEST_KEEP") {
			_ = os.Remove(inst.file("users/keep"))
		}
		if err := inst.endIfUnused(); err != nil {
			return fmt.Errorf("clean up %s: %w", inst.dir, err)
		}
	}
	s.forget()
	return nil
}

// randomID returns a short name of a-z and 2-7 that is hard to guess.
func randomID() string { return rand.Text()[:10] }
