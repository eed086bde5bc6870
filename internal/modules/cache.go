package modules

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// cache is a module cache that shares everything with the user's but the modules of this repository. What they are now must
// not stay in the user's cache, and to unpack all others again takes a minute.
type cache struct {
	folder string
	proxy  string // where the user gets modules: GOPROXY
}

// newCache makes a cache in a folder that does not exist.
func newCache(ctx context.Context, folder string) (cache, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		return cache{}, fmt.Errorf("go env: %w", err)
	}
	users, proxy, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return cache{folder, proxy}, errors.Join(
		share(users, folder, filepath.FromSlash(Core)),
		share(filepath.Join(users, "cache", "download"), filepath.Join(folder, "cache", "download"), filepath.FromSlash(Core)),
	)
}

// share makes a folder of links to all that is in another one, which may not exist, but for what is below the path not.
func share(from, to, not string) error {
	if err := os.MkdirAll(to, 0o750); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	first, rest, deeper := strings.Cut(not, string(filepath.Separator))
	for _, entry := range entries {
		name := entry.Name()
		switch {
		case name == "cache" || !deeper && strings.HasPrefix(name, first):
			continue
		case name == first:
			err = share(filepath.Join(from, name), filepath.Join(to, name), rest)
		default:
			err = os.Symlink(filepath.Join(from, name), filepath.Join(to, name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
