package sqllock_test

import (
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
)

const module = "github.com/sqllock/sqllock"

// A reader learns the whole vocabulary at one sitting.
func TestTheVocabularyIsSmall(t *testing.T) {
	t.Parallel()
	const limit = 25
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

// Whoever uses one database's locks does not get the drivers of the others.
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

func TestTheVocabularyNeedsTheStandardLibraryOnly(t *testing.T) {
	t.Parallel()
	for _, dep := range dependencies(t, ".") {
		if first, _, _ := strings.Cut(dep, "/"); dep != module && strings.Contains(first, ".") {
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
