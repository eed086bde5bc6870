package sqltest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// state is the folder in which the test processes of one user find each other and their servers:
//
//	all.lock                  held while a folder is created or leftovers are removed
//	<key>.lock                held while the server of this key is searched for or started
//	id                        a random name of this folder, for daemons that also serve other machines and containers
//	<key>-<random>/           one server, see instance
//	unavailable-<key>         a source that failed in this run, and why
type state struct{ root string }

// id returns the random name of the folder, which the first process chooses.
func (s state) id() (string, error) {
	unlock, err := lockFile(filepath.Join(s.root, "all.lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	file := filepath.Join(s.root, "id")
	content, err := os.ReadFile(file) //nolint:gosec // a path chosen by sqltest
	if len(content) == 0 {
		content = []byte(randomID())
		err = os.WriteFile(file, content, 0o600)
	}
	return string(content), err
}

func openState() (state, error) {
	if !supported {
		return state{}, errUnsupported
	}
	// The test processes and the reaper must use the same path.
	temp, err := filepath.EvalSymlinks(os.TempDir())
	if err != nil {
		return state{}, err
	}
	s := state{filepath.Join(temp, "sqltest-"+strconv.Itoa(os.Getuid()))}
	if err := os.Mkdir(s.root, folderMode()); err != nil && !errors.Is(err, os.ErrExist) {
		return state{}, err
	}
	return s, checkOwner(s.root)
}

// folderMode returns the mode of the folders above a server's data. Root's servers run as another user, who must be
// able to pass through.
func folderMode() os.FileMode {
	return choose[os.FileMode](os.Geteuid() == 0, 0o711, 0o700)
}

// keyOf returns a key for the servers of engine e from a source; equal keys share a server.
func keyOf(e Engine, s source) string {
	sum := sha256.Sum256([]byte(s.String()))
	return string(e) + "-" + hex.EncodeToString(sum[:4])
}

// instances lists the servers of a key, or all servers if key is empty.
func (s state) instances(key string) []*instance {
	var found []*instance
	dirs, _ := filepath.Glob(filepath.Join(s.root, key+"*", "users"))
	for _, dir := range dirs {
		found = append(found, &instance{dir: filepath.Dir(dir)})
	}
	return found
}

// recall returns why a source failed earlier in this run, or nil.
func (s state) recall(key string) error {
	content, err := os.ReadFile(s.unavailable(key))
	if err != nil {
		return nil //nolint:nilerr // nothing is known
	}
	run, reason, _ := strings.Cut(string(content), "\n")
	if run != strconv.Itoa(runPID()) {
		return nil
	}
	return fmt.Errorf("%s (found out earlier in this run)", reason)
}

// remember records a failed source, so that other test processes of this run need not try it.
func (s state) remember(key string, why error) {
	_ = os.WriteFile(s.unavailable(key), []byte(strconv.Itoa(runPID())+"\n"+why.Error()), 0o600)
}

// forget removes the failures that earlier runs recorded.
func (s state) forget() {
	files, _ := filepath.Glob(s.unavailable("*"))
	for _, file := range files {
		content, err := os.ReadFile(file) //nolint:gosec // a path chosen by sqltest
		run, _, _ := strings.Cut(string(content), "\n")
		if pid, errPID := strconv.Atoi(run); err == nil && (errPID != nil || argsOf(pid) == "") {
			_ = os.Remove(file)
		}
	}
}

func (s state) unavailable(key string) string { return filepath.Join(s.root, "unavailable-"+key) }
