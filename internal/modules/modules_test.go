package modules_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/internal/modules"
)

func read(t *testing.T) *modules.Tree {
	t.Helper()
	tree, err := modules.Read("../..")
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestTheCoreRequiresNoAdapter(t *testing.T) {
	t.Parallel()
	tree := read(t)
	for _, r := range tree.Modules[0].Mod.Require {
		for _, foreign := range []string{modules.Core, "goose", "migrate", "gocron", "robfig", "opentelemetry", "redis", "etcd", "gonum"} {
			if strings.Contains(r.Mod.Path, foreign) {
				t.Errorf("the core requires %s", r.Mod.Path)
			}
		}
	}
}

func TestNoModuleReplacesAnother(t *testing.T) {
	t.Parallel()
	tree := read(t)
	for _, m := range tree.Modules {
		for _, r := range m.Mod.Replace {
			t.Errorf("%s replaces %s", m.Path, r.Old)
		}
		for _, r := range m.Mod.Require {
			if module.IsZeroPseudoVersion(r.Mod.Version) {
				t.Errorf("%s requires %s", m.Path, r.Mod)
			}
			if strings.HasPrefix(r.Mod.Path, modules.Core+"/") && r.Mod.Version != tree.Version {
				t.Errorf("%s requires %s; want %s", m.Path, r.Mod, tree.Version)
			}
		}
	}
	if module.IsPseudoVersion(tree.Version) {
		t.Errorf("the modules require %s of the core, which is no release", tree.Version)
	}
}

func TestTheWorkspacesHaveAllModules(t *testing.T) {
	t.Parallel()
	tree := read(t)
	var used []string
	for _, folder := range []string{"adapter", "bench", "docs/recipes/code", "sqltest/recipes"} {
		used = append(used, workspace(t, tree, folder)...)
	}
	for _, m := range tree.Modules {
		if !slices.Contains(used, m.Folder) {
			t.Errorf("no workspace uses %s", m.Folder)
		}
	}
}

// workspace returns the folders of the modules that a workspace uses. It has to replace those that others of them require.
func workspace(t *testing.T, tree *modules.Tree, folder string) (used []string) {
	t.Helper()
	name := filepath.Join("../..", folder, "go.work")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	work, err := modfile.ParseWork(name, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, use := range work.Use {
		used = append(used, filepath.ToSlash(filepath.Join(folder, use.Path)))
	}
	required := make(map[string]string) // the folder of each module that another one requires
	for _, m := range tree.Modules {
		for _, other := range tree.Modules {
			requires := func(r *modfile.Require) bool { return r.Mod.Path == m.Path }
			if slices.Contains(used, other.Folder) && slices.ContainsFunc(other.Mod.Require, requires) {
				required[m.Path] = m.Folder
			}
		}
	}
	for _, r := range work.Replace {
		if where, is := required[r.Old.Path]; !is || r.Old.Version != tree.Version || filepath.ToSlash(filepath.Join(folder, r.New.Path)) != where {
			t.Errorf("%s replaces %s by %s", name, r.Old, r.New.Path)
		}
		delete(required, r.Old.Path)
	}
	for path, where := range required {
		t.Errorf("%s has to replace %s %s by the folder %s", name, path, tree.Version, where)
	}
	return used
}

// What a workspace hides: a module that needs more than its go.mod says, or a version that does not exist.
func TestUsersGetTheModules(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	tree := read(t)
	proxy, err := tree.Publish(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range tree.Modules {
		if m.Demo {
			continue
		}
		folder := program(t, m.Path)
		run(t, proxy, folder, "get", m.Path+"@"+tree.Version)
		run(t, proxy, folder, "vet", "./...")
	}
	for _, m := range tree.Others() {
		if err := proxy.CheckTidy(t.Context(), m, t.TempDir()); err != nil {
			t.Errorf("make tidy would change %s: %v", m.Folder, err)
		}
	}
	programWithPg(t, proxy, tree.Version)
}

// A program that imports pg depends on pgx, and on what pgx depends on. Its go.mod and its binary name nothing else: no
// adapter, no OpenTelemetry, no Docker, no SQLite.
func programWithPg(t *testing.T, proxy *modules.Proxy, version string) {
	t.Helper()
	allowed := []string{
		modules.Core, "github.com/jackc/pgx/v5", "github.com/jackc/pgpassfile", "github.com/jackc/pgservicefile",
		"github.com/jackc/puddle/v2", "golang.org/x/sync", "golang.org/x/text",
	}
	folder := program(t, modules.Core+"/pg")
	run(t, proxy, folder, "get", modules.Core+"@"+version)
	run(t, proxy, folder, "mod", "tidy")

	text, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	mod, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range mod.Require {
		if !slices.Contains(allowed, r.Mod.Path) {
			t.Errorf("its go.mod requires %s", r.Mod.Path)
		}
	}

	run(t, proxy, folder, "build", "-o", "program")
	found := 0
	for line := range strings.Lines(run(t, proxy, folder, "version", "-m", "program")) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "dep" {
			found++
			if !slices.Contains(allowed, fields[1]) {
				t.Errorf("its binary has %s", fields[1])
			}
		}
	}
	if found == 0 {
		t.Error("its binary tells nothing")
	}
}

// program returns the folder of a new module, whose program imports a package.
func program(t *testing.T, path string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module example.org/program\n\ngo 1.25.0\n",
		"main.go": "package main\n\nimport _ \"" + path + "\"\n\nfunc main() {}\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func run(t *testing.T, proxy *modules.Proxy, folder string, args ...string) string {
	t.Helper()
	out, err := proxy.Go(t.Context(), folder, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
