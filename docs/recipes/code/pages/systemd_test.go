package pages_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestSystemdAcceptsTheUnits(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd is not installed")
	}
	folder := t.TempDir()
	arguments := []string{"verify"}
	units := regexp.MustCompile("(?s)`/etc/systemd/system/([a-z.]+)`[^`]*(?:`[^`]+`[^`]*)?:\n\n```ini\n(.*?)```").FindAllStringSubmatch(page(t, "systemd"), -1)
	if len(units) != len(blocks(t, "systemd", "ini")) {
		t.Fatalf("%d units have a name", len(units))
	}
	for _, unit := range units {
		text := strings.ReplaceAll(unit[2], "/usr/local/bin/", programs+"/")
		name := filepath.Join(folder, unit[1])
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		arguments = append(arguments, name)
	}
	if out, err := exec.CommandContext(t.Context(), analyze, arguments...).CombinedOutput(); err != nil || strings.Contains(string(out), folder) {
		t.Errorf("%v: %s", err, out)
	}
}
