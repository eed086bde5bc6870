package sqltest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// docker runs a command of Docker, and returns its output without the last line break.
func docker(t *testing.T, args ...string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "docker", args...).Output()
	return strings.TrimSpace(string(out)), err
}

func TestContainersOfAnotherStateOnTheSameDaemonStay(t *testing.T) {
	t.Parallel()
	engine, temp := startable(t), ownTemp(t)
	first := newChild(t, engine, temp)
	_, image, ok := strings.Cut(first.Server, "docker image ")
	if !ok {
		t.Skip("no container: " + first.Server)
	}
	first.end(t)
	expectNothingLeft(t, temp, "")

	root := filepath.Join(temp, "sqltest-"+uid())
	id, err := os.ReadFile(filepath.Join(root, "id"))
	if err != nil {
		t.Fatal(err)
	}
	leave := func(state string) (container string) {
		t.Helper()
		container, err := docker(t, "create", "--label=sqltest.root="+root, "--label=sqltest.state="+state, "--label=sqltest.folder=/nowhere", image)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = exec.Command("docker", "rm", "-f", "-v", container).Run() }) //nolint:noctx // the test's context has ended
		return container
	}
	mine, other := leave(string(id)), leave("another")
	newChild(t, engine, temp).end(t)
	if _, err := docker(t, "inspect", mine); err == nil {
		t.Error("a container whose folder is gone was not removed")
	}
	if _, err := docker(t, "inspect", other); err != nil {
		t.Error("a container of another machine was removed")
	}
	_, _ = docker(t, "rm", "-f", "-v", other)
	expectNothingLeft(t, temp, "")
}
