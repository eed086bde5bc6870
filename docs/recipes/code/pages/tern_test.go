package pages_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
)

// Two machines run the command of the page with tern itself. The second migration is the one that two terns alone cannot run
// at the same time: CREATE INDEX CONCURRENTLY waits for the tern that waits for the lock.
func TestTwoMachinesRunTern(t *testing.T) {
	t.Parallel()
	db := database(t)
	folder := t.TempDir()
	for name, text := range map[string]string{
		"001_reports.sql": "CREATE TABLE reports (id int, text text);\nINSERT INTO reports SELECT n, 'x' FROM generate_series(1, 10000) n;\n",
		"002_index.sql":   "---- tern: disable-tx ----\nCREATE INDEX CONCURRENTLY reports_text ON reports (text);\n",
	} {
		if err := os.MkdirAll(filepath.Join(folder, "migrations"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "migrations", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	line := regexp.MustCompile(`(?m)^sqllock run .*$`).FindString(blocks(t, "tern", "sh")[0])
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
			cmd.Dir = folder
			cmd.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"), "SQLLOCK_DB="+db.DSN, "DATABASE_URL="+db.DSN)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s", line, err, out)
			}
		})
	}
	both.Wait()
	var version, rows int
	if err := db.GetContext(t.Context(), &version, "SELECT version FROM schema_version"); err != nil || version != 2 {
		t.Errorf("the version is %d: %v", version, err)
	}
	if err := db.GetContext(t.Context(), &rows, "SELECT count(*) FROM reports"); err != nil || rows != 10000 {
		t.Errorf("there are %d rows: %v", rows, err)
	}
}
