package modules

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"golang.org/x/mod/modfile"
)

// Core is the path of the module at the root of the repository.
const Core = "github.com/sqllock/sqllock"

// Tree is the modules of a working copy: the core, the adapters in adapter/*, otellock, the demo of that, the
// benchmark, and the recipes, of the documents and for tests.
type Tree struct {
	Root    string // the folder of the working copy
	Version string // which the others require of the core, and which all modules get when they are released
	Modules []Module
}

// Module is a module of a Tree.
type Module struct {
	Path   string // its import path
	Folder string // relative to the root, with slashes; "." for the core
	Demo   bool   // a program of this repository, which nobody imports
	Mod    *modfile.File
}

// demos are the folders of the modules that are no libraries.
var demos = []string{"otellock/demo", "bench", "docs/recipes/code", "sqltest/recipes"}

// Read reads the go.mod files of the working copy in the folder root. It is an error if the other modules do not require
// the same version of the core.
func Read(root string) (*Tree, error) {
	tree := &Tree{Root: root}
	files, err := filepath.Glob(filepath.Join(root, "adapter", "*", "go.mod"))
	if err != nil {
		return nil, err
	}
	files = append(files, filepath.Join(root, "otellock", "go.mod"))
	for _, demo := range demos {
		files = append(files, filepath.Join(root, filepath.FromSlash(demo), "go.mod"))
	}
	for _, file := range append([]string{filepath.Join(root, "go.mod")}, files...) {
		text, err := os.ReadFile(file) //nolint:gosec // a file of the working copy
		if err != nil {
			return nil, err
		}
		mod, err := modfile.Parse(file, text, nil)
		if err != nil {
			return nil, err
		}
		folder, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return nil, err
		}
		m := Module{Path: mod.Module.Mod.Path, Folder: filepath.ToSlash(folder), Demo: slices.Contains(demos, filepath.ToSlash(folder)), Mod: mod}
		if want := path.Join(Core, m.Folder); m.Path != want {
			return nil, fmt.Errorf("%s is the module %s; its folder says %s", file, m.Path, want)
		}
		if err := tree.add(m); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	if tree.Version == "" {
		return nil, errors.New("there is no adapter")
	}
	return tree, nil
}

func (t *Tree) add(m Module) error {
	t.Modules = append(t.Modules, m)
	if m.Folder == "." {
		return nil
	}
	i := slices.IndexFunc(m.Mod.Require, func(r *modfile.Require) bool { return r.Mod.Path == Core })
	if i < 0 {
		return fmt.Errorf("it does not require %s", Core)
	}
	version := m.Mod.Require[i].Mod.Version
	if t.Version != "" && version != t.Version {
		return fmt.Errorf("it requires %s of the core, and another module %s", version, t.Version)
	}
	t.Version = version
	return nil
}

// Others returns all modules but the core.
func (t *Tree) Others() []Module {
	return slices.DeleteFunc(slices.Clone(t.Modules), func(m Module) bool { return m.Folder == "." })
}

// folder returns the folder of m.
func (t *Tree) folder(m Module) string { return filepath.Join(t.Root, filepath.FromSlash(m.Folder)) }
