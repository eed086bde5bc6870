package sqllock_test

import (
	"errors"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/locktest"
)

const module = "github.com/sqllock/sqllock"

// A reader learns the whole vocabulary at one sitting.
func TestTheVocabularyIsSmall(t *testing.T) {
	t.Parallel()
	const limit = 29
	if names := exported(t); len(names) > limit {
		t.Errorf("%d names are exported; the limit is %d: %v", len(names), limit, names)
	}
}

// exported lists the exported names of this package; fields and methods belong to their types.
func exported(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var parsed []*ast.File
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, f)
	}
	p, err := doc.NewFromFiles(fset, parsed, module)
	if err != nil {
		t.Fatal(err)
	}
	values := slices.Concat(p.Consts, p.Vars)
	functions := p.Funcs
	for _, typ := range p.Types {
		names = append(names, typ.Name)
		values = slices.Concat(values, typ.Consts, typ.Vars)
		functions = append(functions, typ.Funcs...)
	}
	for _, v := range values {
		names = append(names, v.Names...)
	}
	for _, f := range functions {
		names = append(names, f.Name)
	}
	return names
}

// A program that uses one database's locks does not get the drivers of the others.
func TestPackagesDependOnWhatTheyNeedOnly(t *testing.T) {
	t.Parallel()
	const (
		pgx    = "github.com/jackc/pgx/"
		mysql  = "github.com/go-sql-driver/mysql"
		sqlite = "modernc.org/sqlite"
		docker = "github.com/ory/dockertest/"
		cobra  = "github.com/spf13/cobra"
	)
	for folder, banned := range map[string][]string{
		"pg":                {mysql, sqlite, docker, cobra, module + "/mysql", module + "/leasetable"},
		"mysql":             {pgx, sqlite, docker, cobra, module + "/pg", module + "/leasetable"},
		"leasetable":        {pgx, mysql, sqlite, docker, cobra, module + "/pg", module + "/mysql"},
		"schema":            {pgx, mysql, sqlite, docker, cobra, module + "/pg", module + "/mysql", module + "/leasetable"},
		"sqltest":           {cobra, module + "/pg", module + "/mysql", module + "/leasetable"},
		"internal/locktest": {pgx, mysql, sqlite, docker, module + "/pg", module + "/mysql", module + "/leasetable"},
	} {
		if _, err := os.Stat(folder); err != nil {
			continue // not yet
		}
		for _, dep := range dependencies(t, "./"+folder) {
			for _, b := range banned {
				if dep == strings.TrimSuffix(b, "/") || strings.HasPrefix(dep, strings.TrimSuffix(b, "/")+"/") {
					t.Errorf("%s depends on %s", folder, dep)
				}
			}
		}
	}
}

// What another module tries to do to the inside does not compile.
func TestTheInsideIsOutOfReach(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	write("go.mod", strings.Replace(string(mod), "module "+module, "module example.org/other", 1)+
		"\nrequire "+module+" v0.0.0\nreplace "+module+" => "+here+"\n")
	write("go.sum", string(sum))
	const head = "package p\n\nimport (\n\t\"context\"\n\t\"" + module + "\"\n\t\"" + module + "/leasetable\"\n)\n\n" +
		"func f(ctx context.Context, lease *leasetable.Lease, locker *leasetable.Locker, lock sqllock.Lock) {\n"
	write("may/p.go", head+"\t_, _, _ = lease.Token(), lease.Release(ctx), lock.Release(ctx)\n\t_ = locker.Close()\n}\n")
	tries := []string{
		"lease.End(nil)", "lease.Watch(nil)", "lease.HandOver(ctx, \"\", nil, nil)", "lease.Hold = nil", "lease.hold = nil", "lock.End(nil)",
		"_ = sqllock.Options{}", "_ = locker.store",
		"_ = leasetable.ListOption(func(leasetable.Info) bool { return true })", // a later release may filter in the database
	}
	write("maynot/p.go", head+"\t"+strings.Join(tries, "\n\t")+"\n}\n")
	write("imports/p.go", "package p\n\nimport _ \""+module+"/internal/hold\"\n")
	build := func(what string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "go", "build", "-gcflags=-e", what)
		cmd.Dir = folder
		// The other flags, and no C, so that what has been built already is not built again.
		cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod", "GOWORK=off", "CGO_ENABLED=0")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := build("./may"); err != nil {
		t.Fatalf("what users do: %v\n%s", err, out)
	}
	if out, err := build("./maynot"); err == nil || strings.Count(out, "maynot/p.go:") < len(tries) {
		t.Errorf("of %d tries some compile: %v\n%s", len(tries), err, out)
	}
	if out, err := build("./imports"); err == nil || !strings.Contains(out, "use of internal package") {
		t.Errorf("an internal package is imported: %v\n%s", err, out)
	}
}

func TestTheVocabularyNeedsTheStandardLibraryOnly(t *testing.T) {
	t.Parallel()
	for _, dep := range dependencies(t, ".") {
		if first, _, _ := strings.Cut(dep, "/"); dep != module && !strings.HasPrefix(dep, module+"/") && strings.Contains(first, ".") {
			t.Errorf("the root package depends on %s", dep)
		}
	}
}

func dependencies(t *testing.T, folder string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", folder).Output()
	if err != nil {
		t.Fatalf("go list -deps %s: %v", folder, err)
	}
	return strings.Fields(string(out))
}
