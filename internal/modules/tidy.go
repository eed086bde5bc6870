package modules

import (
	"context"
	"os"
	"path/filepath"
	"strings"
)

// CheckTidy fails with a diff if `go mod tidy` would change m, which is not the core. folder is an empty folder to work in.
//
// Its go.sum lacks the lines of the core, and of other modules of the tree: they change with every commit, and nobody
// needs them, because the workspace has these modules, and users have a go.sum of their own. They are added before the
// check.
func (p *Proxy) CheckTidy(ctx context.Context, m Module, folder string) error {
	if err := p.copyModule(m, folder); err != nil {
		return err
	}
	_, err := p.Go(ctx, folder, "mod", "tidy", "-diff")
	return err
}

// Tidy changes the go.mod and go.sum of a module other than the core as `go mod tidy` does. folder is an empty folder to work in.
func (p *Proxy) Tidy(ctx context.Context, m Module, folder string) error {
	if err := p.copyModule(m, folder); err != nil {
		return err
	}
	if _, err := p.Go(ctx, folder, "mod", "tidy"); err != nil {
		return err
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(folder, name)) //nolint:gosec // the caller's folder
		if err != nil {
			return err
		}
		before, after := split(string(text))
		if err := os.WriteFile(filepath.Join(p.tree.folder(m), name), []byte(before+after), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// copyModule copies m to a folder, and completes its go.sum.
func (p *Proxy) copyModule(m Module, folder string) error {
	if err := os.CopyFS(folder, os.DirFS(p.tree.folder(m))); err != nil {
		return err
	}
	own, err := p.sums(m)
	if err != nil {
		return err
	}
	name := filepath.Join(folder, "go.sum")
	sum, err := os.ReadFile(name) //nolint:gosec // the caller's folder
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	before, after := split(string(sum))
	return os.WriteFile(name, []byte(before+own+after), 0o600)
}

// ours reports whether a module is one of the tree.
func ours(path string) bool { return path == Core || strings.HasPrefix(path, Core+"/") }

// split splits a go.sum, which is sorted, into what is before the lines of the tree's modules and what is after them. A
// go.mod has no such lines.
func split(sum string) (before, after string) {
	for line := range strings.Lines(sum) {
		switch path, _, _ := strings.Cut(line, " "); {
		case ours(path):
		case path < Core && after == "":
			before += line
		default:
			after += line
		}
	}
	return before, after
}
