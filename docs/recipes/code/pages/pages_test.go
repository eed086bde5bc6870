package pages_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/schema"
	"github.com/sqllock/sqllock/sqltest"
)

// programs is a folder with the command line and with tern, built from this workspace.
var programs string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) (code int) {
	folder, err := os.MkdirTemp("", "sqllock-recipes-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	build := exec.Command("go", "build", "-o", folder, "github.com/sqllock/sqllock/cmd/sqllock", "github.com/jackc/tern/v2")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v: %s\n", err, out)
		return 1
	}
	programs = folder
	return m.Run()
}

// page returns the text of a page.
func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../" + name + ".md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// blocks returns the blocks of a page that are in a language.
func blocks(t *testing.T, name, language string) (all []string) {
	t.Helper()
	for _, block := range regexp.MustCompile("(?s)\n```"+language+"\n(.*?)```").FindAllStringSubmatch(page(t, name), -1) {
		all = append(all, block[1])
	}
	if len(all) == 0 {
		t.Fatalf("the page %s has no block in %s", name, language)
	}
	return all
}

// names returns the names of the pages.
func names(t *testing.T) (all []string) {
	t.Helper()
	files, err := filepath.Glob("../../*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if name := strings.TrimSuffix(filepath.Base(file), ".md"); name != "README" {
			all = append(all, name)
		}
	}
	return all
}

// database returns an empty database that has the tables of leases.
func database(t *testing.T) *sqltest.Database {
	t.Helper()
	db := sqltest.Postgres(t)
	if err := schema.Apply(t.Context(), db.DB.DB, schema.Postgres, schema.Tables{}); err != nil {
		t.Fatal(err)
	}
	return db
}

func TestThePagesSayWhatEndsALock(t *testing.T) {
	t.Parallel()
	all := names(t)
	if len(all) < 12 {
		t.Errorf("the pages are %v", all)
	}
	index := page(t, "README")
	for _, name := range all {
		if !strings.Contains(index, "]("+name+".md)") {
			t.Errorf("the index lacks %s", name)
		}
		for _, part := range []string{"**What ends ", "hat happens "} {
			if !strings.Contains(page(t, name), part) {
				t.Errorf("%s lacks %q", name, part)
			}
		}
	}
}

func TestTheGoCodeOfThePagesIsTheTestedCode(t *testing.T) {
	t.Parallel()
	var code strings.Builder
	for _, pattern := range []string{"../*/*.go", "../certmagic/certlock/*.go", "../ent/ent/schema/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			code.Write(text)
		}
	}
	for _, name := range []string{"gorm", "bun", "ent", "sqlc", "kubernetes", "certmagic"} {
		for _, block := range blocks(t, name, "go") {
			if !strings.Contains(code.String(), block) {
				t.Errorf("%s has code that no program here has:\n%s", name, block)
			}
		}
	}
}

// What sqlc has generated belongs to these files.
func TestTheFilesOfSqlcAreOnThePage(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"schema.sql", "query.sql", "sqlc.yaml"} {
		text, err := os.ReadFile("../sqlc/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(page(t, "sqlc"), "\n"+string(text)+"```") {
			t.Errorf("the page lacks %s", file)
		}
	}
}
