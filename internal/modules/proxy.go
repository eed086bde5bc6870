package modules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

// Proxy is a module proxy in a folder, and the environment of a go command that uses it.
type Proxy struct {
	tree   *Tree
	folder string
	cache  cache
}

// Publish makes a Proxy of the files of the tree that are committed, or not ignored, in an empty folder.
func (t *Tree) Publish(ctx context.Context, folder string) (*Proxy, error) {
	listed := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	listed.Dir = t.Root
	out, err := listed.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	names := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	p := &Proxy{tree: t, folder: filepath.Join(folder, "proxy")}
	if p.cache, err = newCache(ctx, filepath.Join(folder, "cache")); err != nil {
		return nil, err
	}
	for _, m := range t.Modules {
		if err := p.publish(m, names); err != nil {
			return nil, fmt.Errorf("%s: %w", m.Path, err)
		}
	}
	return p, nil
}

// publish writes the four files of a module's version. names are the files of the tree.
func (p *Proxy) publish(m Module, names []string) (err error) {
	version := module.Version{Path: m.Path, Version: p.tree.Version}
	if err := os.MkdirAll(filepath.Dir(p.file(version, "")), 0o750); err != nil {
		return err
	}
	info, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{version.Version, time.Now().UTC()})
	if err != nil {
		return err
	}
	mod, err := m.Mod.Format()
	if err != nil {
		return err
	}
	err = errors.Join(
		os.WriteFile(filepath.Join(filepath.Dir(p.file(version, "")), "list"), []byte(version.Version+"\n"), 0o600),
		os.WriteFile(p.file(version, ".info"), info, 0o600),
		os.WriteFile(p.file(version, ".mod"), mod, 0o600))
	if err != nil {
		return err
	}
	archive, err := os.Create(p.file(version, ".zip"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, archive.Close()) }()
	return zip.Create(archive, version, p.tree.files(m, names))
}

// file returns the path of a file of a version in the proxy.
func (p *Proxy) file(v module.Version, suffix string) string {
	return filepath.Join(p.folder, filepath.FromSlash(v.Path), "@v", v.Version+suffix)
}

// files returns those of the named files that belong to m. zip.Create omits those of nested modules.
func (t *Tree) files(m Module, names []string) (files []zip.File) {
	add := func(name, inModule string) {
		on := filepath.Join(t.Root, filepath.FromSlash(name))
		if info, err := os.Lstat(on); err == nil && info.Mode().IsRegular() { // git lists files that were removed, too
			files = append(files, file{on, inModule})
		}
	}
	for _, name := range names {
		if inModule, in := strings.CutPrefix(name, m.Folder+"/"); in {
			add(name, inModule)
		} else if m.Folder == "." {
			add(name, name)
		}
	}
	if !slices.ContainsFunc(files, func(f zip.File) bool { return f.Path() == "LICENSE" }) {
		add("LICENSE", "LICENSE") // as the go command does for a module that has none
	}
	return files
}

// file is a zip.File.
type file struct{ on, path string }

// Path implements zip.File.
func (f file) Path() string { return f.path }

// Lstat implements zip.File.
func (f file) Lstat() (os.FileInfo, error) { return os.Lstat(f.on) }

// Open implements zip.File.
func (f file) Open() (io.ReadCloser, error) { return os.Open(f.on) }

// Go runs the go command in a folder, as a user of the modules does who has no workspace, and returns its output. Other
// modules come from the user's module cache, or from where the user gets them.
func (p *Proxy) Go(ctx context.Context, folder string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-modcacherw -buildvcs=false -trimpath", "GOMODCACHE="+p.cache.folder,
		"GOPROXY=file://"+filepath.ToSlash(p.folder)+","+p.cache.proxy, "GOSUMDB=off") // the go.sum of the adapters has the hashes
	text, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, text)
	}
	return string(text), nil
}

// sums returns the lines of a go.sum for the modules of the tree that m requires.
func (p *Proxy) sums(m Module) (string, error) {
	var lines strings.Builder
	for _, r := range m.Mod.Require {
		if !ours(r.Mod.Path) {
			continue
		}
		archive, err := dirhash.HashZip(p.file(r.Mod, ".zip"), dirhash.Hash1)
		if err != nil {
			return "", err
		}
		mod, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) { return os.Open(p.file(r.Mod, ".mod")) })
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&lines, "%s %s %s\n%[1]s %[2]s/go.mod %[4]s\n", r.Mod.Path, r.Mod.Version, archive, mod)
	}
	return lines.String(), nil
}
