package sqltest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/sqllock/sqllock/sqltest"
)

// docker runs a command of Docker, and returns its output without the last line break.
func docker(t *testing.T, args ...string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "docker", args...).Output()
	return strings.TrimSpace(string(out)), err
}

const hostOverride = "TESTCONTAINERS_HOST_OVERRIDE"

func TestAContainerIsReachedAtItsOwnAddressWhereItsPortIsNot(t *testing.T) {
	t.Parallel()
	engine, temp := startable(t), ownTemp(t)
	c := newChild(t, engine, temp)
	if address(t, engine, c.DSN) == published(t, engine, temp, c.DSN) {
		t.Skip("containers have no address here")
	}
	c.end(t)
	expectNothingLeft(t, temp, "")

	nowhere := hostOverride + "=::1" // the port is published for IPv4
	c = newChild(t, engine, temp, nowhere)
	if at := address(t, engine, c.DSN); strings.HasPrefix(at, "[::1]") || published(t, engine, temp, c.DSN) != at {
		t.Errorf("the server is at %s, and published at %s", at, published(t, engine, temp, c.DSN))
	}
	other := newChild(t, engine, temp, nowhere)
	if address(t, engine, other.DSN) != address(t, engine, c.DSN) {
		t.Error("the server is not shared")
	}
	other.end(t)
	c.end(t)
	expectNothingLeft(t, temp, "")
}

func TestTheMachineWithDockerMayHaveAnotherName(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("127.0.0.2 is this machine on Linux only")
	}
	t.Setenv(hostOverride, "127.0.0.2")
	engine := startable(t)
	db := sqltest.Start(t, engine).Database(t)
	if !strings.Contains(db.Server, "docker image") {
		t.Skip("no container: " + db.Server)
	}
	if at := address(t, engine, db.DSN); !strings.HasPrefix(at, "127.0.0.2:") {
		t.Errorf("the server is at %s", at)
	}
}

func TestAnImageWithADigestIsTheOneThatRuns(t *testing.T) {
	engine := startable(t)
	_, image, ok := strings.Cut(engines[engine](t).Server, "docker image ")
	if !ok {
		t.Skip("no container")
	}
	pinned, err := docker(t, "image", "inspect", "--format", "{{index .RepoDigests 0}}", image)
	if err != nil {
		t.Skip("the image has no digest: it was built on this machine")
	}
	repository, digest, _ := strings.Cut(pinned, "@")
	t.Setenv(variables[engine], "docker:"+repository+":no-such-tag@"+digest)
	db := engines[engine](t)
	if !strings.HasSuffix(db.Server, digest) {
		t.Errorf("server: %s", db.Server)
	}
}

func TestAnImageIsPulledAsTheUserOfDockerLogin(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("DOCKER_CONFIG", dir)
	t.Setenv("HOME", dir)
	auths := `{"auths": {"https://index.docker.io/v1/": {"auth": "aHViOnB3"}, "localhost:5000": {"auth": "bWU6cHc="}}}` // hub:pw, me:pw
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(auths), 0o600); err != nil {
		t.Fatal(err)
	}
	for repository, want := range map[string]string{
		"postgres": "hub", "some/postgres": "hub", "docker.io/library/postgres": "hub", "localhost:5000/postgres": "me", "localhost/postgres": "", "ghcr.io/some/postgres": "",
	} {
		if got := sqltest.Credentials(repository).Username; got != want {
			t.Errorf("%s: the user %q; want %q", repository, got, want)
		}
	}
}

func TestAServerOfATestEndsWithItAlsoWithoutADockerCommand(t *testing.T) {
	engine, temp, programs := startable(t), ownTemp(t), t.TempDir()
	path := os.Getenv("PATH")
	for _, dir := range filepath.SplitList(path) {
		found, _ := filepath.Glob(filepath.Join(dir, "*"))
		for _, program := range found {
			if name := filepath.Base(program); name != "docker" {
				_ = os.Symlink(program, filepath.Join(programs, name)) // the first one counts
			}
		}
	}
	t.Setenv("TMPDIR", temp)
	t.Setenv("PATH", programs)
	before := goleak.IgnoreCurrent()
	tb := newFakeTB(t.Name())
	var server *sqltest.Server
	tb.run(func() { server = sqltest.Start(tb, engine) })
	tb.end()
	if tb.fatal != "" {
		t.Fatal(tb.fatal)
	}
	if !strings.Contains(server.String(), "docker image") {
		t.Skip("no container")
	}
	eventually(t, "no goroutine is left", func() bool { return goleak.Find(before) == nil })
	t.Setenv("PATH", path)
	expectNothingLeft(t, temp, "")
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
		t.Cleanup(func() { _ = exec.Command("docker", "rm", "-f", "-v", container).Run() })
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
