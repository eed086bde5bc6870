package locktest

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// StartBouncer starts a PgBouncer in front of the server of a PostgreSQL database, with additional lines of
// configuration. It returns a DSN that goes through it. The PgBouncer does not support prepared statements. If the
// program is missing, the test is skipped; with CI=true it fails.
func StartBouncer(t *testing.T, dsn, mode string, settings ...string) string {
	t.Helper()
	program := findProgram(t, "pgbouncer")
	if keepsPrepared(t, program) {
		settings = append([]string{"max_prepared_statements = 0"}, settings...)
	}
	server, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	database := strings.TrimPrefix(server.Path, "/")
	password, _ := server.User.Password()
	for {
		address := freeAddress(t)
		host, port, _ := net.SplitHostPort(address)
		config := fmt.Sprintf(`[databases]
%s = host=%s port=%s user=%s password=%s
[pgbouncer]
listen_addr = %s
listen_port = %s
unix_socket_dir =
auth_type = any
pool_mode = %s
%s
`, database, server.Hostname(), server.Port(), server.User.Username(), password, host, port, mode, strings.Join(settings, "\n"))
		if listens(t, program, config, address) {
			return fmt.Sprintf("postgres://anybody@%s/%s?sslmode=disable", address, database)
		}
	}
}

// listens starts a PgBouncer, as starts does.
func listens(t *testing.T, program, config, address string) bool {
	t.Helper()
	folder := t.TempDir()
	file := filepath.Join(folder, "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{file}
	if os.Geteuid() == 0 { // pgbouncer refuses to run as root
		args = append([]string{"-u", "nobody"}, args...)
	}
	return starts(t, exec.CommandContext(t.Context(), program, args...), folder, syscall.SIGKILL, "listening on "+address)
}

// starts starts a program, and waits until it says that it is ready. It reports false if another program has taken one of
// its addresses meanwhile, which may be the same program of another test. The program gets the signal end when the test
// ends. Its log is in folder.
func starts(t *testing.T, cmd *exec.Cmd, folder string, end syscall.Signal, ready string) bool {
	t.Helper()
	log, err := os.Create(filepath.Join(folder, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	said := func() string {
		text, _ := os.ReadFile(log.Name()) // it is there
		return string(text)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // what went wrong is in the log
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(end)
		<-ended
		if t.Failed() {
			t.Logf("%s says:\n%s", cmd.Path, said())
		}
	})
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	for !strings.Contains(said(), ready) {
		select {
		case <-timer.C:
			t.Fatalf("%s is not ready after a minute", cmd.Path)
		case <-tick.C:
		case <-ended:
			if !strings.Contains(said(), "Address already in use") {
				t.Fatalf("%s does not listen", cmd.Path)
			}
			return false
		}
	}
	return true
}

// keepsPrepared reports whether a PgBouncer supports prepared statements, as it does since 1.21.
func keepsPrepared(t *testing.T, program string) bool {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	var major, minor int
	if _, err := fmt.Sscanf(string(out), "PgBouncer %d.%d", &major, &minor); err != nil {
		t.Fatalf("the version of pgbouncer: %q: %v", out, err)
	}
	return major > 1 || minor >= 21
}

func findProgram(t *testing.T, name string) string {
	t.Helper()
	for _, name := range []string{name, "/usr/sbin/" + name} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	Impossible(t, name+" is not installed")
	return ""
}
