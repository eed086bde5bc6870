package locktest

import (
	"context"
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
	address := freeAddress(t)
	host, port, _ := net.SplitHostPort(address)
	database := strings.TrimPrefix(server.Path, "/")
	password, _ := server.User.Password()
	config := filepath.Join(t.TempDir(), "pgbouncer.ini")
	content := fmt.Sprintf(`[databases]
%s = host=%s port=%s user=%s password=%s
[pgbouncer]
listen_addr = %s
listen_port = %s
unix_socket_dir =
auth_type = any
pool_mode = %s
%s
`, database, server.Hostname(), server.Port(), server.User.Username(), password, host, port, mode, strings.Join(settings, "\n"))
	if err := os.WriteFile(config, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{config}
	if os.Geteuid() == 0 { // pgbouncer refuses to run as root
		args = append([]string{"-u", "nobody"}, args...)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	var log strings.Builder
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("pgbouncer says:\n%s", log.String())
		}
	})
	awaitListener(t, program, address)
	return fmt.Sprintf("postgres://anybody@%s/%s?sslmode=disable", address, database)
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

// awaitListener waits until a started program listens.
func awaitListener(t *testing.T, program, address string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			_ = c.Close()
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s does not listen: %v", program, err)
		}
	}
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
