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
//	users/<pid>    a process that needs the server; "keep" for somebody's look at it
//	container      the container's name, written before it is created
//	pid, signal    the program's process, written before it becomes the server,
//	               and the signal that ends it
//	server.json    written when the server answers; gone when its end has begun
//	server.ended   server.json, then
//	reaper.sh      the script that ends the server when nobody needs it any more
//	reaper         its process
//	data/, temp/   of a program
//	secret, log    of a program, too
type instance struct{ dir string }

// record is what other test processes have to know of a server.
type record struct {
	DSN    string `json:"dsn"`    // of the administrator
	Source string `json:"source"` // "docker image postgres:17"
}

//go:embed reaper.sh
var reaperScript []byte

// newInstance makes the folder of a server to be, used by this process, and has
// it watched from now on.
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

// register says that this process needs the server, and so does the run that it
// belongs to: with `go test -p 1` the server lives on between two packages.
func (i *instance) register() error {
	for _, pid := range []int{os.Getpid(), runPID()} {
		if err := i.write(filepath.Join("users", strconv.Itoa(pid)), ""); err != nil {
			return err
		}
	}
	return nil
}

// keep leaves the server running after this run.
func (i *instance) keep() error { return i.write("users/keep", "") }

// adopt registers this process and returns the record of the server, unless
// there is none (yet, or any more). The reaper takes the record away before it
// looks at the users for the last time: whoever registered and still sees the
// record was seen, too.
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

// isWatched tells whether the reaper is still there.
func (i *instance) isWatched() bool {
	content, _ := os.ReadFile(i.file("reaper"))
	pid, err := strconv.Atoi(string(content))
	return err == nil && strings.Contains(argsOf(pid), i.file("reaper.sh"))
}

// end ends the server and removes the folder, whoever uses it.
func (i *instance) end() error { return i.reap("now") }

// endIfUnused does that if no user is left.
func (i *instance) endIfUnused() error { return i.reap("once") }

// reap does not stop half-way because the caller's context has ended.
//
//nolint:contextcheck,nolintlint // see above; nolintlint does not know that it is used
func (i *instance) reap(mode string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	// A folder that was left half made may have no script.
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

// The reaper has no open file in common with this process: `go test` waits for
// everybody who has inherited the test's output.
func (i *instance) reaper(mode string) *exec.Cmd {
	cmd := exec.Command("/bin/sh", i.file("reaper.sh"), i.dir, mode) //nolint:noctx // outlives every context
	cmd.Dir = "/"
	return cmd
}

// clean removes what earlier runs have left: servers without users, and those
// kept for a look, unless SQLTEST_KEEP is still set.
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

// randomID is short, unguessable enough for a name, and made of a-z and 2-7.
func randomID() string { return rand.Text()[:10] }
