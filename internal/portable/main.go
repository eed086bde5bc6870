// Portable checks the types of this module's packages, and of all that they need, as macOS and Windows see them. To compile
// all that takes ten times as long. It leaves out what needs SQLite, which is portable, and large.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
)

func main() {
	log.SetFlags(0)
	for _, system := range []string{"darwin", "windows"} {
		if err := check(system); err != nil {
			log.Fatalf("%s: %v", system, err)
		}
	}
}

// listed is a package as go list prints it.
type listed struct {
	ImportPath, Dir string
	GoFiles, Deps   []string
	ImportMap       map[string]string
	DepOnly         bool
}

// check checks all packages on one system. go list prints a package after those that it imports.
func check(system string) error {
	list := exec.CommandContext(context.Background(), "go", "list", "-tags", "sqltest_no_sqlite", "-deps",
		"-json=ImportPath,Dir,GoFiles,Deps,ImportMap,DepOnly", "./...")
	list.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return err
	}
	var all []listed
	needed := make(map[string]bool)
	for in := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		err := in.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		all = append(all, p)
		if !p.DepOnly && !slices.Contains(p.Deps, "modernc.org/sqlite") {
			needed[p.ImportPath] = true
			for _, path := range p.Deps {
				needed[path] = true
			}
		}
	}
	c := checker{token.NewFileSet(), map[string]*types.Package{"unsafe": types.Unsafe}}
	for _, p := range all {
		if c.known[p.ImportPath] == nil && needed[p.ImportPath] {
			if err := c.check(p); err != nil {
				return err
			}
		}
	}
	return nil
}

type checker struct {
	files *token.FileSet
	known map[string]*types.Package // by path
}

func (c checker) check(p listed) (err error) {
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(c.files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	conf := types.Config{
		Importer:         importer{c, p.ImportMap},
		Sizes:            types.SizesFor("gc", runtime.GOARCH),
		IgnoreFuncBodies: p.DepOnly,
	}
	c.known[p.ImportPath], err = conf.Check(p.ImportPath, c.files, files, nil)
	return err
}

// importer finds what one package imports. The map has the paths that are others there, as in vendored packages.
type importer struct {
	checker
	paths map[string]string
}

// Import implements types.Importer.
func (i importer) Import(path string) (*types.Package, error) {
	if other, ok := i.paths[path]; ok {
		path = other
	}
	if p := i.known[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%s is not among the packages", path)
}
